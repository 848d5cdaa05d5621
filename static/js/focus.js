// Where the keyboard is after something appeared or went.
export function watchFocus() {
  showFoundPassage();
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const row = event.detail.target;
    keepFocus(row);
    const isLeaving = row.matches(".document-row") && !event.detail.fragment.textContent.trim();
    const dialog = document.getElementById("dialog");
    if (!isLeaving || !(dialog.open || row.contains(document.activeElement))) return;
    // The row goes: its neighbour, or the page's beginning, takes the keyboard over.
    const next = row.nextElementSibling ?? row.previousElementSibling;
    const heir = next?.querySelector("a, button") ?? document.getElementById("main");
    requestAnimationFrame(() => requestAnimationFrame(() => heir.focus({ preventScroll: true })));
  });
}

// What is replaced with the same again keeps the keyboard.
function keepFocus(target) {
  const { id } = document.activeElement;
  if (!id || !target.contains(document.activeElement)) return;
  requestAnimationFrame(() => document.getElementById(id)?.focus({ preventScroll: true }));
}

function showFoundPassage() {
  const passage = document.querySelector("[data-focus]");
  if (!passage) return;
  // A passage may be longer than the window: the quoted words count.
  (document.getElementById("quote") ?? passage).scrollIntoView({ block: "center" });
  passage.focus({ preventScroll: true });
}
