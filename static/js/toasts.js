// Notes in the corner: dismissed by their button, and by themselves when they ask for nothing.
const LIFE_MS = 8000;
const container = () => document.getElementById("notifications");

export function watchToasts() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-dismiss]");
    const note = button?.closest(".toast");
    if (note) dismiss(note);
  });
  document.addEventListener("keydown", (event) => {
    const note = event.key === "Escape" && event.target.closest?.(".toast");
    if (note) dismiss(note);
  });
  // A note whose action was taken has done its work.
  document.addEventListener("htmx:afterRequest", (event) => {
    const note = event.target.closest?.(".toast");
    if (note && event.detail.successful) dismiss(note);
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
  if (stays(toast)) return;
  let timer = null;
  // It waits while another tab is in front, or while the pointer is on it.
  const isRead = () =>
    !document.hidden && !toast.matches(":hover") && !toast.contains(document.activeElement);
  const start = () => {
    clearTimeout(timer);
    timer = setTimeout(() => (isRead() ? toast.remove() : start()), LIFE_MS);
  };
  for (const name of ["pointerleave", "focusout"]) toast.addEventListener(name, start);
  start();
}

// Errors, and notes that offer to undo something, wait for the reader.
function stays(toast) {
  return toast.dataset.kind === "error" || toast.hasAttribute("data-stays");
}

// Dismiss a note; the focus moves to the next note, or to the page.
function dismiss(note) {
  const hadFocus = note.contains(document.activeElement);
  const next = note.nextElementSibling ?? note.previousElementSibling;
  note.remove();
  if (hadFocus) (next?.querySelector("[data-dismiss]") ?? document.getElementById("main"))?.focus();
}

function removeTwins(toast) {
  const key = toast.dataset.key;
  if (!key) return;
  for (const other of container().querySelectorAll(`[data-key="${CSS.escape(key)}"]`)) {
    if (other !== toast) other.remove();
  }
}
