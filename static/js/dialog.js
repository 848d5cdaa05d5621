// The one dialog of a page: HTMX fills it, this opens and closes it.
export function watchDialog() {
  const dialog = document.getElementById("dialog");
  const content = document.getElementById("dialog-content");
  if (!dialog || !content) return;
  let opener = null;

  // Only now does HTMX hear what is typed into the new content.
  document.addEventListener("htmx:afterSettle", (event) => {
    const isFilled = event.detail.target === content && content.firstElementChild;
    if (!isFilled || dialog.open) return;
    opener = document.activeElement;
    dialog.showModal();
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const isRefused = event.detail.xhr.getResponseHeader("HX-Retarget") === "#dialog-content";
    if (isRefused || content.querySelector("[data-keeps-dialog]")) return;
    if (dialog.open && dialog.contains(event.target)) dialog.close();
  });
  dialog.addEventListener("click", (event) => {
    const isBackdrop = event.target === dialog;
    if (isBackdrop || event.target.closest("[data-close-dialog]")) {
      event.preventDefault();
      dialog.close();
    }
  });
  dialog.addEventListener("close", () => {
    content.replaceChildren();
    // It may have been replaced meanwhile: its twin has the keyboard then.
    if (opener && !opener.isConnected && opener.id) document.getElementById(opener.id)?.focus({ preventScroll: true });
  });
}
