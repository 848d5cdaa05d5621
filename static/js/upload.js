// Uploads: each file is a form in the list of documents, which HTMX sends; then the server's own row
// takes its place. What cannot be stored, or was here already, stays with its reason until it is dismissed.
import { refreshList, refreshTree } from "./document-list.js";
import { signInAgain } from "./session.js";
import { showToast } from "./toasts.js";
import { droppedFiles, folderOf, readableFiles } from "./upload-files.js";

const MAX_REQUESTS = 3;
const MAX_ROWS = 40;
// Of more files at once the list shows the newest when all are sent, not each as it comes.
const MAX_LISTED = 50;
const MAX_ATTEMPTS = 8;
const MAX_DELAY_S = 30;
const ANNOUNCE_EVERY_MS = 15000;
// Until then an estimate of the time that is left would only be a guess.
const MIN_ELAPSED_S = 2;
// No fault of the file.
const RETRIED = new Set([429, 502, 503, 504]);
// The same bytes would only get the same answer.
const FINAL = new Set([415, 422]);

const hasFiles = (event) => event.dataTransfer?.types.includes("Files");

export function watchUploads() {
  // A file dropped beside a field would otherwise replace the page.
  for (const name of ["dragover", "drop"]) {
    document.addEventListener(name, (event) => hasFiles(event) && !isFileField(event.target) && event.preventDefault());
  }
  const form = document.querySelector("form[data-upload]");
  if (!form) {
    if (document.body.dataset.person) document.addEventListener("drop", offerUpload);
    return;
  }
  const uploads = new Uploads(form);
  watchChoices(form, uploads);
  watchDrops(form, uploads);
  watchFolder(form.elements.folder_id, form.elements.visibility.options[0]);
  window.addEventListener("beforeunload", (event) => {
    if (uploads.isBusy) event.preventDefault();
  });
}

class Uploads {
  constructor(form) {
    this.form = form;
    this.accepted = form.elements.file.accept.split(",").filter((kind) => kind.startsWith("."));
    this.template = document.getElementById("upload-row");
    this.progress = document.getElementById("upload-progress");
    this.storageKey = `failed-uploads:${document.body.dataset.person}`;
    this.queue = [];
    this.resumesAt = 0;
    this.isPaused = false;
    this.reset();
    document.addEventListener("htmx:xhr:progress", (event) => this.onProgress(event));
    // Before the listeners that would go to the sign-in page.
    document.addEventListener("htmx:beforeOnLoad", (event) => this.onAnswer(event), { capture: true });
    document.addEventListener("htmx:afterRequest", ({ detail }) => this.finish(uploadRow(detail.elt)));
    document.addEventListener("htmx:sendError", (event) => this.onLost(event));
    document.addEventListener("portal:signed-in", () => this.resume());
    document.addEventListener("click", (event) => this.onClick(event));
    window.addEventListener("pagehide", () => this.keepFailures());
    this.restoreFailures();
  }

  get list() {
    return document.getElementById("upload-rows");
  }

  rows(...states) {
    const all = [...this.list.children];
    return states.length ? all.filter((row) => states.includes(row.dataset.state)) : all;
  }

  get isBusy() {
    return this.queue.length > 0 || this.rows("waiting", "sending").length > 0;
  }

  reset() {
    for (const row of this.rows("known")) row.remove();
    Object.assign(this, { stored: 0, known: 0, listed: 0, bytes: 0, sentBytes: 0, hasFolders: false, startedAt: Date.now() });
  }

  add({ files, skipped = 0 }) {
    if (!this.isBusy) this.reset();
    // As the form stands now: what is chosen in it later is for later files.
    const fields = [...new FormData(this.form)].filter(([name]) => name !== "file");
    for (const file of files) {
      this.queue.push({ file, fields });
      this.bytes += file.size;
      this.hasFolders ||= folderOf(file) !== "";
    }
    const words = skipped ? this.words("skipped", { count: skipped }) : files.length ? "" : this.words("nothing");
    this.notice(words);
    this.fill();
  }

  // A thousand files do not make a thousand rows: what waits beyond the first is a number.
  fill() {
    while (this.queue.length && this.rows("waiting", "sending").length < MAX_ROWS) {
      const { file, fields } = this.queue.shift();
      const row = this.addRow(file);
      const form = row.querySelector("form");
      for (const [name, value] of fields) addField(form, name, value);
      addField(form, "path", folderOf(file));
      const chosen = new DataTransfer();
      chosen.items.add(file);
      form.elements.file.files = chosen.files;
      // The key makes the same file sent again the same request: nothing is stored twice.
      form.setAttribute("hx-headers", JSON.stringify({ "Idempotency-Key": randomKey() }));
      if (file.size > Number(this.form.dataset.maxBytes)) this.fail(row, this.words("tooLarge", { name: file.name }));
      else window.htmx.process(row);
    }
    this.send();
  }

  addRow({ name, size }) {
    const row = this.template.content.firstElementChild.cloneNode(true);
    for (const place of row.querySelectorAll("[data-name]")) place.textContent = name;
    Object.assign(row.dataset, { name, size, attempts: 0, sentBytes: 0 });
    this.list.append(row);
    return row;
  }

  send() {
    const wait_ms = this.resumesAt - Date.now();
    if (wait_ms > 0) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.send(), wait_ms);
    } else if (!this.isPaused) {
      const free = MAX_REQUESTS - this.rows("sending").length;
      for (const row of this.rows("waiting").slice(0, Math.max(0, free))) this.post(row);
    }
    this.summarise();
  }

  post(row) {
    Object.assign(row.dataset, { state: "sending", attempts: Number(row.dataset.attempts) + 1, startedAt: Date.now() });
    const form = row.querySelector("form");
    form.setAttribute("hx-swap", this.listed < MAX_LISTED ? "afterbegin" : "none");
    this.listed += 1;
    form.requestSubmit();
  }

  onProgress({ target, detail }) {
    const row = uploadRow(target);
    if (row?.dataset.state !== "sending" || !detail.lengthComputable) return;
    const share = detail.loaded / detail.total;
    // The browser also tells how much of the answer has come.
    if (share * row.dataset.size <= row.dataset.sentBytes) return;
    row.dataset.sentBytes = share * row.dataset.size;
    const bar = row.querySelector("progress");
    if (share < 1) bar.value = share;
    else bar.removeAttribute("value");
    const values = { share: formatNumber(Math.floor(100 * share) / 100, { style: "percent" }) };
    const left = this.remaining(row.dataset.startedAt, share);
    this.tell(row, share < 1 ? this.words("sending", values) + left : this.words("storing"));
    this.summarise();
  }

  onAnswer(event) {
    const { elt, xhr } = event.detail;
    const row = uploadRow(elt);
    if (!row) return;
    // A proxy may answer with a page of its own, such as to sign in to a network.
    const isStored = xhr.status < 300 && xhr.responseText.includes("data-document-id=");
    if (isStored) {
      Object.assign(row.dataset, { state: "stored", note: noteIn(xhr.responseText) });
      return;
    }
    event.preventDefault();
    if (xhr.status === 401 || hasCode(xhr, "csrf_failed")) this.pause(row);
    else if (RETRIED.has(xhr.status) || hasCode(xhr, "idempotency_in_flight")) this.retryLater(row, xhr);
    else this.fail(row, messageIn(xhr.responseText), !FINAL.has(xhr.status));
    this.fill();
  }

  async onLost({ detail }) {
    const row = uploadRow(detail.elt);
    if (!row) return;
    // A file that was changed or moved since it was chosen looks like a lost connection.
    const [file] = row.querySelector("form").elements.file.files;
    const canRead = await file.slice(0, 1).arrayBuffer().then(() => true, () => false);
    if (canRead) this.retryLater(row, detail.xhr);
    else this.fail(row, this.words("unreadable", row.dataset), false);
    this.fill();
  }

  // Its row stays until HTMX has put the document's in its place.
  finish(row) {
    if (row?.dataset.state !== "stored") return;
    const { note, size } = row.dataset;
    this[note ? "known" : "stored"] += 1;
    this.sentBytes += Number(size);
    if (note && this.rows("known").length < MAX_ROWS) this.keep(row, "known", note);
    else row.remove();
    if (!this.isBusy && this.listed > MAX_LISTED) refreshList();
    // The rows are there already; the tree lacks the folders that were made.
    else if (!this.isBusy && this.hasFolders) refreshTree();
    this.fill();
  }

  retryLater(row, xhr) {
    const attempts = Number(row.dataset.attempts);
    if (xhr.status !== 429 && attempts >= MAX_ATTEMPTS) return this.fail(row, messageIn(xhr.responseText));
    const told_s = xhr.status ? Number(xhr.getResponseHeader("Retry-After")) : 0;
    const wait_s = Math.min(told_s || 2 ** (attempts - 1), 2 * MAX_DELAY_S);
    this.resumesAt = Math.max(this.resumesAt, Date.now() + 1000 * wait_s);
    this.wait(row, this.words(xhr.status ? "busy" : "lost"));
  }

  // Nothing more can be sent before the session is renewed, which the dialog does.
  pause(row) {
    if (row.dataset.attempts >= MAX_ATTEMPTS) return this.fail(row, "", true);
    this.wait(row, this.words("signedOut"));
    if (!this.isPaused) signInAgain();
    this.isPaused = true;
  }

  resume() {
    this.isPaused = false;
    this.fill();
  }

  wait(row, words) {
    Object.assign(row.dataset, { state: "waiting", sentBytes: 0 });
    row.querySelector("progress").value = 0;
    this.tell(row, words);
  }

  fail(row, words, canRetry = false) {
    this.keep(row, "failed", words || this.words("failed", row.dataset));
    row.querySelector("[data-upload-retry]").hidden = !canRetry;
    row.querySelector("[data-words]").dataset.testid = "upload-error";
    this.sentBytes += Number(row.dataset.size);
  }

  keep(row, state, words) {
    row.dataset.state = state;
    row.querySelector("progress").hidden = true;
    row.querySelector("[data-upload-dismiss]").hidden = false;
    this.tell(row, words);
  }

  tell(row, words) {
    row.querySelector("[data-words]").textContent = words;
  }

  onClick({ target }) {
    const row = uploadRow(target);
    if (target.closest("[data-upload-retry]")) this.retry([row]);
    else if (target.closest("[data-upload-dismiss]")) this.dismiss([row]);
    else if (target.closest("[data-dismiss-all]")) this.dismiss(this.rows("failed", "known"));
    else if (target.closest("[data-retry-all]")) this.retry(this.rows("failed").filter(canRetry));
  }

  retry(rows) {
    for (const row of rows) {
      row.querySelector("[data-upload-retry]").hidden = true;
      row.querySelector("[data-upload-dismiss]").hidden = true;
      row.querySelector("progress").hidden = false;
      delete row.querySelector("[data-words]").dataset.testid;
      row.dataset.attempts = 0;
      this.sentBytes -= Number(row.dataset.size);
      this.wait(row, this.words("waiting"));
    }
    this.list.focus({ preventScroll: true });
    this.resume();
  }

  dismiss(rows) {
    const heir = rows.at(-1)?.nextElementSibling ?? rows[0]?.previousElementSibling;
    for (const row of rows) row.remove();
    const next = heir?.querySelector("button:not([hidden])") ?? this.form.querySelector("[type=submit]");
    next.focus();
    this.summarise();
  }

  summarise() {
    const failed = this.rows("failed");
    const { stored, known } = this;
    const kept = this.rows("failed", "known").length;
    const active = this.queue.length + this.rows("waiting", "sending").length;
    const counts = { stored, known, total: stored + known + failed.length + active, failed: failed.length };
    const words = this.words(`summary${known ? "Known" : ""}${failed.length ? "Failed" : ""}`, counts);
    const sent = this.rows("sending").reduce((sum, row) => sum + Number(row.dataset.sentBytes), this.sentBytes);
    const share = this.bytes ? Math.min(1, sent / this.bytes) : 0;
    const part = (name) => this.progress.querySelector(`[data-${name}]`);
    // Failures of an earlier visit are no part of an upload, and a single one has its own buttons.
    this.progress.hidden = !counts.total || (!active && kept < (this.bytes ? 1 : 2));
    const remaining = active ? this.remaining(this.startedAt, share) : "";
    part("summary").textContent = this.bytes ? words + remaining : "";
    part("share").hidden = !active;
    part("share").value = share;
    part("retry-all").hidden = !failed.some(canRetry);
    part("dismiss-all").hidden = kept < 2;
    const more = document.getElementById("upload-more");
    more.textContent = this.queue.length ? this.words("more", { count: this.queue.length }) : "";
    this.announce(words, active);
  }

  // Screen readers hear the end, and now and then how far it is.
  announce(words, active) {
    const spoken = document.getElementById("upload-spoken");
    const isDone = !active && this.bytes > 0;
    if (!isDone && (!active || Date.now() - (this.announcedAt ?? 0) < ANNOUNCE_EVERY_MS)) return;
    this.announcedAt = Date.now();
    const text = isDone && !this.known && !this.rows("failed").length ? `${words} ${this.words("finished")}` : words;
    if (spoken.textContent !== text) spoken.textContent = text;
  }

  notice(words) {
    const notice = document.getElementById("upload-notice");
    notice.textContent = words;
    notice.hidden = !words;
  }

  remaining(startedAt, share) {
    const elapsed_s = (Date.now() - startedAt) / 1000;
    if (elapsed_s < MIN_ELAPSED_S || share <= 0 || share >= 1) return "";
    const left_s = (elapsed_s * (1 - share)) / share;
    const unit = left_s < 90 ? "second" : "minute";
    const count = Math.ceil(unit === "second" ? left_s : left_s / 60);
    const time = formatNumber(count, { style: "unit", unit, unitDisplay: "long" });
    return ` · ${this.words("remaining", { time })}`;
  }

  words(key, values = {}) {
    return this.template.dataset[key].replace(/\{(\w+)\}/g, (place, name) => values[name] ?? place);
  }

  // Failures stay when the page is left or reloaded; their files are gone then, and chosen again.
  keepFailures() {
    const failures = this.rows("failed").map((row) => [row.dataset.name, row.querySelector("[data-words]").textContent]);
    if (failures.length) sessionStorage.setItem(this.storageKey, JSON.stringify(failures.slice(0, MAX_ROWS)));
    else sessionStorage.removeItem(this.storageKey);
  }

  restoreFailures() {
    for (const [name, words] of JSON.parse(sessionStorage.getItem(this.storageKey) ?? "[]")) {
      this.fail(this.addRow({ name, size: 0 }), words);
    }
    this.summarise();
  }
}

const isFileField = (element) => element.matches?.("[type=file]");
const uploadRow = (element) => element.closest?.(".upload-row");
const canRetry = (row) => !row.querySelector("[data-upload-retry]").hidden;
const formatNumber = (number, style) => new Intl.NumberFormat(document.documentElement.lang, style).format(number);

function watchChoices(form, uploads) {
  const folder = form.querySelector("[data-upload-folder]");
  const chooseFolder = form.querySelector("[data-choose-folder]");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    form.elements.file.click();
  });
  chooseFolder.addEventListener("click", () => folder.click());
  form.addEventListener("change", ({ target }) => {
    if (target.type !== "file") return;
    const files = [...target.files];
    // The field must be ready for the same file again.
    target.value = "";
    uploads.add(target === folder ? readableFiles(files, uploads.accepted) : { files });
  });
}

// What is dropped on any other page: the form of the list asks where to and for whom, and sends it as without a script.
async function offerUpload(event) {
  const dialog = document.getElementById("dialog");
  if (!hasFiles(event) || isFileField(event.target) || dialog.open) return;
  const chosen = new DataTransfer();
  const { files } = await droppedFiles(event.dataTransfer, [""]);
  for (const file of files) chosen.items.add(file);
  const answer = await fetch("/documents").then((response) => response.text(), () => "");
  const upload = new DOMParser().parseFromString(answer, "text/html").querySelector(".upload");
  if (!upload) return showToast("toast-unreachable");
  Object.assign(upload.querySelector("h2"), { id: "dialog-title", className: "" });
  document.getElementById("dialog-content").replaceChildren(upload);
  const form = upload.querySelector("form");
  const { file, folder_id, visibility } = form.elements;
  file.files = chosen.files;
  // A line for each file, as long as these are the files.
  const paths = addField(form, "paths", files.map((one) => folderOf(one).replace(/\s+/g, " ")).join("\n"));
  file.addEventListener("change", () => paths.remove());
  watchFolder(folder_id, visibility.options[0]);
  dialog.showModal();
}

// What is shared in a folder for members is shared with them.
function watchFolder(folder, shared) {
  const show = () => {
    const isForMembers = folder.selectedOptions[0].hasAttribute("data-for-members");
    shared.text = isForMembers ? shared.dataset.members : shared.dataset.all;
  };
  folder.addEventListener("change", show);
  show();
}

function watchDrops(zone, uploads) {
  zone.addEventListener("dragover", (event) => zone.classList.toggle("is-over", hasFiles(event)));
  for (const name of ["dragleave", "drop"]) {
    zone.addEventListener(name, () => zone.classList.remove("is-over"));
  }
  zone.addEventListener("drop", async (event) => {
    if (hasFiles(event)) uploads.add(await droppedFiles(event.dataTransfer, uploads.accepted));
  });
}

function addField(form, name, value) {
  const field = Object.assign(document.createElement("input"), { type: "hidden", name, value });
  form.append(field);
  return field;
}

// Why the server refused a file, in the reader's language; empty where it did not say.
function messageIn(text) {
  const answer = new DOMParser().parseFromString(text ?? "", "text/html");
  return answer.querySelector(".toast-message")?.textContent ?? "";
}

// That the file was here already; empty where it was not.
function noteIn(text) {
  const answer = new DOMParser().parseFromString(text, "text/html");
  return answer.querySelector("[data-note]")?.dataset.note ?? "";
}

const hasCode = (xhr, code) => xhr.responseText.includes(`data-key="${code}"`);

// crypto.randomUUID is for HTTPS alone.
const randomKey = () => crypto.getRandomValues(new Uint32Array(4)).join("-");
