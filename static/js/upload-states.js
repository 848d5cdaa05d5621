// How far documents are that were uploaded here, asked after while they are prepared.
const EVERY_MS = 2000;
// As the server answers at a time; the oldest, which are worked on first, come first.
const AT_ONCE = 50;
const OVER = new Set(["ready", "failed", "gone"]);

// What the server says of documents, by id: {status, isKnown, content}.
export function statesIn(text) {
  const answer = new DOMParser().parseFromString(text, "text/html");
  const states = new Map();
  for (const element of answer.querySelectorAll("template[data-upload-state]")) {
    const { documentId, status, known } = element.dataset;
    states.set(documentId, { status, isKnown: known !== undefined, content: element.content });
    element.remove();
  }
  return { states, rest: answer.body.innerHTML };
}

export class DocumentStates {
  // `tell(id, state)` is called whenever something is known of a document that is followed.
  constructor(address, tell) {
    this.address = address;
    this.tell = tell;
    this.followed = new Set();
    this.timer = null;
  }

  follow(documentId) {
    this.followed.add(documentId);
    this.timer ??= setTimeout(() => this.#ask(), EVERY_MS);
  }

  async #ask() {
    const ids = [...this.followed].slice(0, AT_ONCE);
    const query = new URLSearchParams(ids.map((id) => ["id", id]));
    try {
      const answer = await fetch(`${this.address}?${query}`, { headers: { "HX-Request": "true" } });
      // After a sign-out, nothing is said until the next file is stored.
      if (answer.status === 401) {
        this.timer = null;
        return;
      }
      if (answer.ok) this.#note(statesIn(await answer.text()).states);
    } catch {
      // Without a connection the next round asks again.
    }
    this.timer = this.followed.size ? setTimeout(() => this.#ask(), EVERY_MS) : null;
  }

  #note(states) {
    for (const [documentId, state] of states) {
      if (OVER.has(state.status)) this.followed.delete(documentId);
      this.tell(documentId, state);
    }
  }
}
