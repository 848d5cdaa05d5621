// Sends files one a request, a few at a time. It knows nothing of the page: `tell` is called with
// each file whose state changed, `rest` whenever there is nothing left to send.
//
//     waiting ── sending ── storing ── stored          the server has it
//        ▲          │          │ ├──── failed          and says why not, or cannot be reached
//        └─ busy, or lost: again ┘
const AT_ONCE = 3;
// For a server that answers nothing, after 1, 2, 4 … 30 seconds; it has some two minutes to return.
const MOST_TRIES = 8;
const LONGEST_WAIT_S = 30;
const STILL_STORING_S = 2;
// What goes away again, and is not for the file to answer for.
const PASSING = new Set([429, 502, 503, 504]);
// The same bytes would only be told the same.
const NEVER = new Set([415, 422]);
const IN_FLIGHT = 409;
const SIGNED_OUT = 401;
const FORBIDDEN = 403;

export class UploadQueue {
  constructor(address, tell, rest) {
    this.address = address;
    this.tell = tell;
    this.rest = rest;
    this.waiting = [];
    this.running = 0;
    this.startsAt = 0;
  }

  get isBusy() {
    return this.running > 0 || this.waiting.length > 0;
  }

  // `items` are {file, fields}: fields are the pairs of the form that go with the file.
  add(items) {
    for (const item of items) this.#renew(item);
    this.waiting.push(...items);
    this.#go();
  }

  #renew(item) {
    // The key makes the same file sent again the same request: nothing is stored twice.
    item.key ??= randomKey();
    Object.assign(item, { state: "waiting", tries: 0, share: 0, reason: "", message: "", answer: "" });
  }

  #go() {
    while (this.running < AT_ONCE && this.waiting.length) {
      this.running += 1;
      this.#send(this.waiting.shift()).finally(() => {
        this.running -= 1;
        this.#go();
        if (!this.isBusy) this.rest();
      });
    }
  }

  async #send(item) {
    for (;;) {
      await this.#untilStart();
      // To the browser's request that is the same as a lost connection: nothing came of it.
      if (!(await isReadable(item.file))) return this.#giveUp(item);
      item.tries += 1;
      this.#set(item, "sending");
      const answer = await post(this.address, item, (state, share) => {
        item.share = share;
        this.#set(item, state);
      });
      const wait_s = this.#judge(item, answer);
      if (wait_s === null) return;
      this.startsAt = Math.max(this.startsAt, Date.now() + 1000 * wait_s);
    }
  }

  // Seconds until this file is sent again; null when that was its end.
  #judge(item, answer) {
    if (answer.status === SIGNED_OUT) {
      this.#stop(item, "signedOut");
    } else if (hasExpired(answer)) {
      this.#stop(item, "expired");
    } else if (!answer.status || PASSING.has(answer.status)) {
      const isBusy = answer.status === 429;
      if (!isBusy && item.tries >= MOST_TRIES) return this.#end(item, "failed", answer);
      item.share = 0;
      this.#set(item, "waiting", answer.status ? "paused" : "lost");
      return waitOf(answer, item.tries);
    } else if (answer.status === IN_FLIGHT && item.tries < MOST_TRIES) {
      this.#set(item, "storing");
      return STILL_STORING_S;
    } else {
      return this.#end(item, answer.status < 400 ? "stored" : "failed", answer);
    }
    return null;
  }

  #end(item, state, answer) {
    item.answer = answer.text;
    item.canRetry = !NEVER.has(answer.status);
    this.#set(item, state);
    return null;
  }

  // Nothing more can be sent: all that wait would only be told the same.
  #stop(item, reason) {
    for (const one of [item, ...this.waiting.splice(0)]) this.#set(one, "failed", reason);
  }

  #giveUp(item) {
    item.canRetry = false;
    this.#set(item, "failed", "unreadable");
  }

  #set(item, state, reason = "") {
    Object.assign(item, { state, reason });
    this.tell(item);
  }

  async #untilStart() {
    for (;;) {
      const wait_ms = this.startsAt - Date.now();
      if (wait_ms <= 0) return;
      await new Promise((done) => setTimeout(done, wait_ms));
    }
  }
}

function waitOf(answer, tries) {
  const told = Number(answer.retryAfter);
  if (answer.status && told > 0) return Math.min(told, 2 * LONGEST_WAIT_S);
  return Math.min(2 ** (tries - 1), LONGEST_WAIT_S);
}

// A file that was changed or moved since it was chosen stays closed to the page.
function isReadable(file) {
  return file.slice(0, 1).arrayBuffer().then(() => true, () => false);
}

// After a sign-in in another tab, this page's token for forms is old.
function hasExpired({ status, text }) {
  return status === FORBIDDEN && text.includes('data-key="csrf_failed"');
}

// {status, text, retryAfter}; status 0 when no answer came.
function post(address, { file, fields, key }, tell) {
  const data = new FormData();
  for (const [name, value] of fields) data.append(name, value);
  data.append("file", file, file.name);
  const request = new XMLHttpRequest();
  request.upload.addEventListener("progress", (event) => {
    if (event.lengthComputable) tell("sending", event.loaded / event.total);
  });
  request.upload.addEventListener("load", () => tell("storing", 1));
  return new Promise((done) => {
    request.addEventListener("loadend", () =>
      done({
        status: request.status,
        text: request.responseText,
        retryAfter: request.status ? request.getResponseHeader("Retry-After") : null,
      }),
    );
    request.open("POST", address);
    request.setRequestHeader("HX-Request", "true");
    request.setRequestHeader("Idempotency-Key", key);
    request.send(data);
  });
}

// crypto.randomUUID is for HTTPS alone.
function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
