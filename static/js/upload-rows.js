// The rows of files on their way, and the line above them. A thousand files do not make a thousand
// rows: what waits beyond the first is a number, what is done goes after a while, and only what has
// failed stays until it is dismissed.
import { failedBefore, rememberFailed } from "./upload-memory.js";

const MOST_ROWS = 40;
// How often screen readers hear how an upload goes, while it goes on.
const SPEAK_EVERY_MS = 15000;
const FOLDS_AFTER_MS = { ready: 8000, gone: 8000, known: 30000, stored: 120000 };

export class UploadRows {
  constructor({ person, onRetry }) {
    this.person = person;
    this.onRetry = onRetry;
    this.template = document.getElementById("upload-item");
    this.list = document.getElementById("upload-queue");
    this.progress = document.getElementById("upload-progress");
    this.more = document.getElementById("upload-more");
    this.said = document.getElementById("upload-said");
    this.spoken = document.getElementById("upload-spoken");
    this.spokenAt = 0;
    this.items = new Set();
    this.changed = new Set();
    this.shown = 0;
    this.isDue = false;
    this.list.addEventListener("click", (event) => this.#onClick(event));
    this.progress.querySelector("[data-retry-all]").addEventListener("click", () => this.#retryAll());
    this.progress.querySelector("[data-dismiss-all]").addEventListener("click", () => {
      this.#dismiss(this.#failed());
    });
    const before = failedBefore(person);
    if (before.length) this.add(before);
  }

  // Whether the page has files that are still to be sent, or may be sent again.
  get holdFiles() {
    const isHeld = (item) => isUnderway(item) || (item.state === "failed" && item.canRetry);
    return [...this.items].some(isHeld);
  }

  add(items) {
    // What was done before counts no more when something new begins; what is still being prepared
    // may yet fail, and says so here.
    if (![...this.items].some(isUnderway)) this.#forget([...this.items].filter(isOver));
    this.said.hidden = true;
    for (const item of items) {
      this.items.add(item);
      this.changed.add(item);
    }
    this.#draw();
  }

  change(item) {
    this.changed.add(item);
    this.#draw();
  }

  // Something to say that is about no file of ours.
  say(words) {
    this.said.textContent = words;
    this.said.hidden = !words;
    this.#speak(words);
  }

  words(key, values = {}) {
    const told = this.template.dataset[key] ?? "";
    return told.replace(/\{(\w+)\}/g, (place, name) => values[name] ?? place);
  }

  #failed() {
    return [...this.items].filter((item) => item.state === "failed");
  }

  // Once a frame, however many files told of themselves since the last.
  #draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      for (const item of this.changed) this.#drawItem(item);
      this.changed.clear();
      this.#fold();
      this.#fill();
      this.#summarise();
      rememberFailed(this.person, this.#failed());
    });
  }

  #drawItem(item) {
    if (!this.items.has(item)) return;
    const needsRow = item.state !== "waiting" && !isDone(item);
    if (!item.row && (needsRow || this.shown < MOST_ROWS)) this.#addRow(item);
    if (!item.row) return;
    const { row, state } = item;
    const bar = row.querySelector("progress");
    row.dataset.state = state;
    row.classList.toggle("is-failed", state === "failed");
    bar.hidden = !["waiting", "sending", "storing"].includes(state);
    if (state === "storing") bar.removeAttribute("value");
    else bar.value = item.share;
    this.#drawWords(item);
    row.querySelector("[data-upload-retry]").hidden = !(state === "failed" && item.canRetry);
    row.querySelector("[data-upload-dismiss]").hidden = state !== "failed" && !isDone(item);
    this.#foldLater(item);
  }

  #drawWords(item) {
    const cell = item.row.querySelector(".upload-item-state");
    if (item.state === "failed") cell.dataset.testid = "upload-error";
    else delete cell.dataset.testid;
    if (item.content) this.#drawContent(cell, item);
    else cell.textContent = item.message || this.#wordsFor(item);
  }

  // Its link must not lose the focus each time the server is asked.
  #drawContent(cell, item) {
    const content = document.importNode(item.content, true);
    const hadFocus = cell.contains(document.activeElement);
    const isSame = cell.textContent === content.textContent;
    if (isSame || (hadFocus && item.state === "stored")) return;
    cell.replaceChildren(content);
    if (hadFocus) (cell.querySelector("a") ?? item.row.querySelector("[data-upload-dismiss]")).focus();
  }

  #wordsFor({ state, reason, share, file }) {
    const values = { name: file.name, share: numberWords(Math.floor(100 * share) / 100, { style: "percent" }) };
    return this.words(reason || state, values);
  }

  #addRow(item) {
    const row = this.template.content.firstElementChild.cloneNode(true);
    row.querySelector(".upload-item-name").textContent = item.file.name;
    row.querySelector(".upload-item-size").textContent = sizeWords(item.file.size);
    row.querySelector("progress").setAttribute("aria-label", item.file.name);
    for (const place of row.querySelectorAll("[data-name]")) place.textContent = item.file.name;
    item.row = row;
    row.uploadItem = item;
    this.list.append(row);
    this.shown += 1;
  }

  #dropRow(item) {
    clearTimeout(item.timer);
    item.timer = null;
    if (!item.row) return;
    item.row.remove();
    item.row = null;
    this.shown -= 1;
  }

  #foldLater(item) {
    clearTimeout(item.timer);
    const after_ms = FOLDS_AFTER_MS[item.state];
    if (!after_ms) return;
    item.timer = setTimeout(() => {
      // Not while it has the focus.
      if (item.row?.matches(":hover, :focus-within")) this.#foldLater(item);
      else this.#dropRow(item);
    }, after_ms);
  }

  // What is done makes room, the oldest first.
  #fold() {
    if (this.shown <= MOST_ROWS) return;
    for (const row of [...this.list.children]) {
      if (this.shown <= MOST_ROWS) return;
      if (isDone(row.uploadItem) && !row.matches(":focus-within")) this.#dropRow(row.uploadItem);
    }
  }

  #fill() {
    let hidden = 0;
    for (const item of this.items) {
      if (item.row || item.state !== "waiting") continue;
      if (this.shown < MOST_ROWS) this.#drawItem(item);
      else hidden += 1;
    }
    this.more.textContent = hidden ? this.words("more", { count: hidden }) : "";
    this.more.hidden = !hidden;
  }

  #summarise() {
    const items = [...this.items];
    const failed = this.#failed();
    const stored = items.filter(isDone).length;
    const counts = { stored, total: items.length, failed: failed.length };
    const words = this.words(failed.length ? "summaryFailed" : "summary", counts);
    const underway = items.some(isUnderway);
    this.progress.hidden = !items.length;
    this.progress.querySelector("[data-upload-words]").textContent = words;
    const bar = this.progress.querySelector("progress");
    const bytes = items.reduce((sum, item) => sum + item.file.size, 0);
    const sent = items.reduce((sum, item) => sum + item.file.size * shareOf(item), 0);
    bar.hidden = !underway;
    bar.value = bytes ? sent / bytes : 0;
    this.progress.querySelector("[data-retry-all]").hidden = !failed.some((one) => one.canRetry);
    this.progress.querySelector("[data-dismiss-all]").hidden = !failed.length;
    if (items.every((item) => item.isOld)) return;
    const finished = `${words} ${this.words("finished")}`;
    if (!underway && this.spoken.textContent !== finished) this.#speak(finished);
    if (underway && Date.now() - this.spokenAt >= SPEAK_EVERY_MS) this.#speak(words);
  }

  #speak(words) {
    this.spokenAt = Date.now();
    this.spoken.textContent = words;
  }

  #onClick(event) {
    const item = event.target.closest(".upload-item")?.uploadItem;
    if (!item) return;
    if (event.target.closest("[data-upload-retry]")) this.#retry([item]);
    if (event.target.closest("[data-upload-dismiss]")) this.#dismiss([item]);
  }

  #retryAll() {
    this.#retry(this.#failed().filter((item) => item.canRetry));
  }

  #retry(items) {
    this.list.focus({ preventScroll: true });
    this.onRetry(items);
  }

  #dismiss(items) {
    const row = items.length === 1 ? items[0].row : null;
    const heir = row?.nextElementSibling ?? row?.previousElementSibling;
    this.#forget(items);
    // The keyboard goes on with the next row; after all of them it may begin the next upload.
    const next = heir?.querySelector("button:not([hidden])");
    (next ?? document.querySelector("form[data-upload] button[type=submit]"))?.focus();
    this.#draw();
  }

  #forget(items) {
    for (const item of items) {
      this.#dropRow(item);
      this.items.delete(item);
    }
  }
}

export function isUnderway(item) {
  return ["waiting", "sending", "storing"].includes(item.state);
}

function isDone(item) {
  return item.state === "stored" || isOver(item);
}

// Nothing more will be told of it.
function isOver(item) {
  return ["known", "ready", "gone"].includes(item.state);
}

function shareOf(item) {
  return isUnderway(item) ? item.share : 1;
}

function sizeWords(bytes) {
  const units = ["B", "KB", "MB", "GB"];
  const exponent = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const digits = { maximumFractionDigits: exponent < 2 ? 0 : 1 };
  return `${numberWords(bytes / 1024 ** exponent, digits)} ${units[exponent]}`;
}

function numberWords(number, style) {
  return new Intl.NumberFormat(document.documentElement.lang, style).format(number);
}
