// Uploads: each file has a request and a row of its own, with its progress or why it failed.
import { acceptedSuffixes, filesDropped, filesOf, filesOfFolder, folderOf } from "./upload-files.js";
import { UploadQueue } from "./upload-queue.js";
import { UploadRows } from "./upload-rows.js";
import { freshToken, replaceToken } from "./upload-session.js";
import { DocumentStates, statesIn } from "./upload-states.js";

// Of more files at once the list below shows the newest when all are sent, not each as it comes.
const MOST_LISTED = 50;

export function watchUploads() {
  const form = document.querySelector("form[data-upload]");
  if (!form) return;
  const uploads = new Uploads(form);
  watchChoices(form, uploads);
  watchDrops(form, uploads);
  window.addEventListener("beforeunload", (event) => {
    if (uploads.queue.isBusy) event.preventDefault();
  });
  // The list refreshes itself: it must not go to the sign-in page while files are not sent yet.
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { elt, xhr } = event.detail;
    const isAsking = elt.id === "document-progress";
    if (isAsking && xhr.status === 401 && uploads.rows.holdFiles) event.preventDefault();
  });
}

class Uploads {
  constructor(form) {
    this.form = form;
    this.accepted = acceptedSuffixes(form.querySelector("input[name=file]"));
    this.byDocument = new Map();
    this.rows = new UploadRows({
      person: form.dataset.person,
      onRetry: (items) => this.#sendAgain(items),
    });
    this.queue = new UploadQueue(
      form.action,
      (item) => this.#change(item),
      () => this.#refreshList(),
    );
    this.states = new DocumentStates(form.dataset.states, (id, state) => this.#note(id, state));
    this.listed = 0;
    this.isListStale = false;
  }

  take({ files, leftOut }) {
    // As the form stands now: what is chosen in it later is for later files.
    const common = [...new FormData(this.form)].filter(([name]) => name !== "file");
    const items = files.map((file) => {
      const fields = [...common, ["path", folderOf(file)]];
      return { file, fields, state: "waiting", share: 0, canRetry: true };
    });
    const [tooLarge, good] = parted(items, ({ file }) => file.size > Number(this.form.dataset.maxBytes));
    for (const item of tooLarge) Object.assign(item, { state: "failed", reason: "tooLarge", canRetry: false });
    this.rows.add(items);
    this.queue.add(good);
    if (leftOut) this.rows.say(this.rows.words("leftOut", { count: leftOut }));
    else if (!items.length) this.rows.say(this.rows.words("nothing"));
  }

  // Some may have waited until their sender signed in again in another tab.
  async #sendAgain(items) {
    this.#setAll(items, { state: "waiting", reason: "", message: "", share: 0, content: null });
    const { token, reason } = await freshToken(this.form);
    if (reason) return this.#setAll(items, { state: "failed", reason });
    if (token) {
      replaceToken(token);
      for (const item of items) item.fields = withToken(item.fields, token);
    }
    this.queue.add(items);
    for (const item of items) this.rows.change(item);
  }

  #setAll(items, values) {
    for (const item of items) this.rows.change(Object.assign(item, values));
  }

  #change(item) {
    if (item.state === "stored") this.#store(item);
    else if (item.state === "failed") item.message = messageIn(item.answer);
    this.rows.change(item);
  }

  #store(item) {
    const { states, rest } = statesIn(item.answer);
    // A proxy answered, such as with a page to sign in to a network.
    if (!states.size) {
      item.state = "failed";
      return;
    }
    for (const [documentId, state] of states) {
      this.#show(item, state);
      // The file that brought it here is the one whose row tells how it goes on.
      if (state.isKnown) continue;
      this.byDocument.set(documentId, item);
      this.states.follow(documentId);
    }
    this.listed += 1;
    const list = document.querySelector(this.form.dataset.rows);
    if (list && this.listed <= MOST_LISTED) window.htmx.swap(list, rest, { swapStyle: "afterbegin" });
    else this.isListStale = true;
  }

  #note(documentId, state) {
    const item = this.byDocument.get(documentId);
    if (!item) return;
    this.#show(item, state);
    this.rows.change(item);
    if (!this.queue.isBusy) this.#refreshList();
  }

  // A document that could not be read is tried again on its own row, not by sending its file.
  #show(item, { status, isKnown, content }) {
    const ended = { ready: "ready", failed: "failed", gone: "gone" }[status] ?? "stored";
    Object.assign(item, { state: isKnown ? "known" : ended, content, canRetry: status !== "failed" });
  }

  // Not while the list has the focus, which a later round makes up for, and without an entry in the
  // history.
  #refreshList() {
    const results = document.querySelector(this.form.dataset.rows)?.closest("section");
    if (!this.isListStale || !results || results.matches(":focus-within")) return;
    this.isListStale = false;
    this.listed = 0;
    const query = new URLSearchParams(new FormData(document.getElementById("document-filters")));
    const address = `${location.pathname}?${query}`;
    const headers = { "X-Refresh": "true" };
    window.htmx.ajax("GET", address, { target: `#${results.id}`, swap: "outerHTML", headers });
  }
}

function watchChoices(form, uploads) {
  const input = form.querySelector("input[name=file]");
  const folder = form.querySelector("[data-upload-folder]");
  const chooseFolder = form.querySelector("[data-choose-folder]");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    input.click();
  });
  chooseFolder.hidden = !("webkitdirectory" in folder);
  chooseFolder.addEventListener("click", () => folder.click());
  input.addEventListener("change", () => {
    // The list empties with the field, which must be ready for the same file again.
    const chosen = filesOf(input);
    input.value = "";
    uploads.take(chosen);
  });
  folder.addEventListener("change", () => {
    const chosen = filesOfFolder(folder, uploads.accepted);
    folder.value = "";
    uploads.take(chosen);
  });
}

function watchDrops(zone, uploads) {
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  let depth = 0;
  zone.addEventListener("dragenter", (event) => {
    if (!hasFiles(event)) return;
    depth += 1;
    zone.classList.add("is-over");
  });
  zone.addEventListener("dragleave", () => {
    depth = Math.max(0, depth - 1);
    if (!depth) zone.classList.remove("is-over");
  });
  // A file dropped beside the zone would otherwise replace the page.
  for (const name of ["dragover", "drop"]) {
    document.addEventListener(name, (event) => hasFiles(event) && event.preventDefault());
  }
  zone.addEventListener("drop", async (event) => {
    depth = 0;
    zone.classList.remove("is-over");
    if (hasFiles(event)) uploads.take(await filesDropped(event.dataTransfer, uploads.accepted));
  });
}

// Why the server refused a file, in the reader's language; empty where it did not say.
function messageIn(text) {
  const answer = new DOMParser().parseFromString(text ?? "", "text/html");
  return answer.querySelector(".toast-message")?.textContent ?? "";
}

function withToken(fields, token) {
  return fields.map(([name, value]) => [name, name === "csrf_token" ? token : value]);
}

function parted(items, test) {
  return [items.filter(test), items.filter((item) => !test(item))];
}
