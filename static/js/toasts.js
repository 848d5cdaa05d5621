// Notes in the corner: dismissed by their button, and by themselves when they ask for nothing.
const LIFE_MS = 8000;
const MOST_TOASTS = 4;
const container = () => document.getElementById("notifications");

export function watchToasts() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-dismiss]");
    if (button) button.closest(".toast, .upload-item")?.remove();
  });
  // A note whose action was taken has done its work.
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) event.target.closest?.(".toast")?.remove();
  });
  const region = container();
  if (!region) return;
  region.querySelectorAll(".toast").forEach(welcome);
  new MutationObserver((changes) => {
    for (const change of changes) {
      for (const node of change.addedNodes) {
        if (node instanceof Element && node.matches(".toast")) welcome(node);
      }
    }
  }).observe(region, { childList: true });
}

// Show a copy of the toast in the template with this id.
export function showToast(templateId) {
  const template = document.getElementById(templateId);
  if (template) container()?.append(template.content.cloneNode(true));
}

function welcome(toast) {
  removeTwins(toast);
  crowdOut();
  // Errors, and notes that offer to undo something, wait for the reader.
  if (toast.dataset.kind === "error" || toast.querySelector("form")) return;
  let timer = null;
  const start = () => (timer = setTimeout(() => toast.remove(), LIFE_MS));
  const stop = () => clearTimeout(timer);
  for (const name of ["pointerenter", "focusin"]) toast.addEventListener(name, stop);
  for (const name of ["pointerleave", "focusout"]) toast.addEventListener(name, start);
  start();
}

// The oldest give way, so that notes never cover the page.
function crowdOut() {
  const toasts = [...container().querySelectorAll(".toast")];
  for (const toast of toasts.slice(0, Math.max(0, toasts.length - MOST_TOASTS))) toast.remove();
}

function removeTwins(toast) {
  const key = toast.dataset.key;
  if (!key) return;
  for (const other of container().querySelectorAll(`[data-key="${CSS.escape(key)}"]`)) {
    if (other !== toast) other.remove();
  }
}
