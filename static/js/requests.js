// What HTMX does when an answer is not the fragment it hoped for.
import { showToast } from "./toasts.js";

// The server asks after so many rows at a time; the oldest, which are worked on first, are last.
const WATCH_LIMIT = 20;
// What HTMX logs as errors though nothing is wrong: a search makes way for the next one, a row has left
// the page since the server was asked about it, what was typed is refused with its reason, and the browser
// itself logs a lost connection.
const EXPECTED = new Set(["afterRequest", "sendAbort", "sendError", "oobErrorNoTarget"].map((name) => `htmx:${name}`));
const SENT_MS = 10_000;
const LOADING_MS = 300;
const isRefusal = (name, { xhr }) => name === "htmx:responseError" && xhr.status < 500;

export function watchRequests() {
  refuseTwins();
  window.htmx.logger = (_, name, detail) => {
    if (EXPECTED.has(name) || isRefusal(name, detail)) delete detail.error;
  };
  // What takes long shows that it does. To mark it at once would lay out all of it again before the key
  // or click that asked for it is painted.
  document.addEventListener("htmx:beforeSend", ({ detail: { elt, target, xhr } }) => {
    if (isPolling(elt)) return;
    const timer = setTimeout(() => target.toggleAttribute("data-loading", true), LOADING_MS);
    xhr.addEventListener("loadend", () => {
      clearTimeout(timer);
      target.removeAttribute("data-loading");
    });
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, elt } = event.detail;
    if (xhr.status < 400) return;
    if (isPolling(elt)) {
      // The next second asks again; a note each second would only be noise.
      event.detail.shouldSwap = false;
    } else if (!xhr.getResponseHeader("HX-Retarget") && !isOwnFragment(event)) {
      // A proxy answered with a page of its own.
      event.detail.shouldSwap = false;
      showToast("toast-unexpected");
    }
  });
  document.addEventListener("htmx:sendError", (event) => {
    if (!isPolling(event.detail.elt)) showToast("toast-unreachable");
  });
  document.addEventListener("htmx:configRequest", (event) => {
    const { elt, formData } = event.detail;
    if (!isPolling(elt) || !formData.has("watch")) return;
    const latest = formData.getAll("watch").slice(-WATCH_LIMIT);
    formData.delete("watch");
    for (const value of latest) formData.append("watch", value);
  });
}

// A second click or Enter, while the first is on its way, would do everything twice.
function refuseTwins() {
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-sent]")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  // A form may also ask what its choice would change: that does not send it.
  document.addEventListener("htmx:beforeSend", ({ detail: { elt, requestConfig, xhr } }) => {
    if (requestConfig.verb !== "post" || requestConfig.triggeringEvent?.type !== "submit") return;
    elt.dataset.sent = "";
    xhr.addEventListener("loadend", () => delete elt.dataset.sent);
  });
  // Where the page is left for the answer: after all who may send the form themselves.
  window.addEventListener("submit", ({ target: form, defaultPrevented }) => {
    if (defaultPrevented || form.method !== "post") return;
    form.dataset.sent = "";
    // After a stop, or an answer that is a file, it may be sent again.
    if (!form.matches("[data-long]")) setTimeout(() => delete form.dataset.sent, SENT_MS);
  });
  // The page may have been kept by the browser while it was left.
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("[data-sent]")) delete form.dataset.sent;
  });
}

// Requests that no user waits for.
function isPolling(elt) {
  const trigger = elt?.getAttribute?.("hx-trigger");
  return Boolean(trigger?.startsWith("every") || elt?.hasAttribute?.("data-quiet"));
}

// A fragment that replaces its own target says so by having the same id.
function isOwnFragment(event) {
  const id = event.detail.target?.id;
  return Boolean(id) && event.detail.xhr.responseText.includes(`id="${id}"`);
}
