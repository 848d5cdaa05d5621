// Uploads: each file goes by itself, with its own progress and its own error.
import { showToast } from "./toasts.js";

const AT_ONCE = 2;

export function watchUploads() {
  const form = document.querySelector("form[data-upload]");
  if (!form) return;
  const input = form.querySelector("input[type=file]");
  const waiting = [];
  let running = 0;

  const next = () => {
    while (running < AT_ONCE && waiting.length) {
      running += 1;
      send(form, waiting.shift()).finally(() => {
        running -= 1;
        next();
      });
    }
  };
  const take = (files) => {
    for (const file of files) {
      const item = addItem(file);
      if (file.size > Number(form.dataset.maxBytes)) fail(item, words("tooLarge", file));
      else waiting.push({ file, item });
    }
    next();
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    input.click();
  });
  input.addEventListener("change", () => {
    // The list empties with the field, which must be ready for the same file again.
    const files = [...input.files];
    input.value = "";
    take(files);
  });
  watchDrops(form, take);
}

function watchDrops(zone, take) {
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
  zone.addEventListener("drop", (event) => {
    depth = 0;
    zone.classList.remove("is-over");
    if (hasFiles(event)) take([...event.dataTransfer.files]);
  });
}

function send(form, { file, item }) {
  const data = new FormData(form);
  data.delete("file");
  data.append("file", file, file.name);
  const request = new XMLHttpRequest();
  const bar = item.querySelector("progress");
  return new Promise((done) => {
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) bar.value = (100 * event.loaded) / event.total;
    });
    request.upload.addEventListener("load", () => {
      bar.removeAttribute("value");
      setState(item, template().dataset.sent);
    });
    request.addEventListener("load", () => finish(form, request, file, item));
    request.addEventListener("error", () => fail(item, words("failed", file)));
    request.addEventListener("loadend", done);
    request.open("POST", form.action);
    request.setRequestHeader("HX-Request", "true");
    request.send(data);
  });
}

function finish(form, request, file, item) {
  const elsewhere = request.getResponseHeader("HX-Redirect");
  if (elsewhere) {
    location.assign(elsewhere);
  } else if (request.status >= 400) {
    const answer = new DOMParser().parseFromString(request.responseText, "text/html");
    const message = answer.querySelector(".toast-message")?.textContent;
    fail(item, message ?? words("failed", file));
  } else {
    item.remove();
    const list = document.querySelector(form.dataset.rows);
    if (list) window.htmx.swap(list, request.responseText, { swapStyle: "afterbegin" });
    else showToast("toast-unexpected");
  }
}

function addItem(file) {
  const item = template().content.firstElementChild.cloneNode(true);
  item.querySelector(".upload-item-name").textContent = file.name;
  item.querySelector("progress").setAttribute("aria-label", file.name);
  document.getElementById("upload-queue").append(item);
  return item;
}

function fail(item, message) {
  item.classList.add("is-failed");
  item.dataset.failed = "true";
  item.querySelector(".upload-item-state").dataset.testid = "upload-error";
  item.querySelector("progress").remove();
  item.querySelector("button").hidden = false;
  setState(item, message);
}

function setState(item, text) {
  item.querySelector(".upload-item-state").textContent = text;
}

function words(key, file) {
  return template().dataset[key].replace("{name}", file.name);
}

function template() {
  return document.getElementById("upload-item");
}
