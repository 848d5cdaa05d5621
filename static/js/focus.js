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

// What is replaced with the same again keeps the keyboard; a conversation that was deleted gives it
// to the next one, or to the last.
function keepFocus(target) {
  const focused = document.activeElement;
  if (!target.contains(focused)) return;
  const rows = () => [...document.querySelectorAll(".conversation-row")];
  const index = rows().indexOf(focused.closest(".conversation-row"));
  requestAnimationFrame(() => {
    const left = rows();
    const neighbour = (left[index] ?? left.at(-1))?.querySelector("a");
    const same = focused.id && document.getElementById(focused.id);
    const heir = same || (index >= 0 && (neighbour ?? document.getElementById("main")));
    if (heir) heir.focus({ preventScroll: true });
  });
}

function showFoundPassage() {
  const passage = document.querySelector("[data-focus]");
  if (!passage) return;
  // A passage may be longer than the window: the quoted words count.
  (document.getElementById("quote") ?? passage).scrollIntoView({ block: "center" });
  passage.focus({ preventScroll: true });
}
