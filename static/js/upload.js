// Uploads: each file goes by itself, with a row that tells how far it is and why it failed.
import {
  acceptedSuffixes,
  filesDropped,
  filesOf,
  filesOfFolder,
} from "./upload-files.js";
import { UploadQueue } from "./upload-queue.js";
import { UploadRows } from "./upload-rows.js";
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
}

class Uploads {
  constructor(form) {
    this.form = form;
    this.accepted = acceptedSuffixes(form.querySelector("input[name=file]"));
    this.byDocument = new Map();
    this.rows = new UploadRows({ onRetry: (items) => this.#sendAgain(items) });
    this.queue = new UploadQueue(form.action, (item) => this.#change(item));
    this.states = new DocumentStates(form.dataset.states, (id, state) => this.#note(id, state));
    this.listed = 0;
    this.isListStale = false;
  }

  take({ files, leftOut }) {
    // As the form stands now: what is chosen in it later is for later files.
    const fields = [...new FormData(this.form)].filter(([name]) => name !== "file");
    const items = files.map((file) => ({ file, fields, state: "waiting", share: 0, canRetry: true }));
    const [tooLarge, good] = parted(items, ({ file }) => file.size > Number(this.form.dataset.maxBytes));
    for (const item of tooLarge) Object.assign(item, { state: "failed", reason: "tooLarge", canRetry: false });
    this.rows.add(items);
    this.queue.add(good);
    if (leftOut) this.rows.say(this.rows.words("leftOut", { count: leftOut }));
    else if (!items.length) this.rows.say(this.rows.words("nothing"));
  }

  #sendAgain(items) {
    for (const item of items) item.content = null;
    this.queue.add(items);
    for (const item of items) this.rows.change(item);
  }

  #change(item) {
    if (item.state === "stored") this.#store(item);
    else if (item.state === "failed") item.message = messageIn(item.answer);
    this.rows.change(item);
    if (!this.queue.waiting.length && this.isListStale) this.#refreshList();
  }

  #store(item) {
    const { states, rest } = statesIn(item.answer);
    for (const [documentId, state] of states) {
      this.byDocument.set(documentId, item);
      this.#show(item, state);
      if (!state.isKnown) this.states.follow(documentId);
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
  }

  // A document that could not be read is tried again on its own row, not by sending its file.
  #show(item, { status, isKnown, content }) {
    const ended = { ready: "ready", failed: "failed", gone: "gone" }[status] ?? "stored";
    Object.assign(item, { state: isKnown ? "known" : ended, content, canRetry: status !== "failed" });
  }

  #refreshList() {
    this.isListStale = false;
    const results = document.querySelector(this.form.dataset.rows)?.closest("section");
    if (!results || results.matches(":focus-within")) return;
    const query = new URLSearchParams(new FormData(document.getElementById("document-filters")));
    const address = `${location.pathname}?${query}`;
    window.htmx.ajax("GET", address, { target: `#${results.id}`, swap: "outerHTML" });
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

function parted(items, test) {
  return [items.filter(test), items.filter((item) => !test(item))];
}
