// Selecting rows of a list: shift for a range, all that match, and how many there are.
export function watchSelecting() {
  let last = null;
  document.addEventListener("click", (event) => {
    const box = event.target.closest?.(".row-check");
    if (!box) return;
    if (event.shiftKey && last?.isConnected) tickBetween(last, box);
    last = box;
    tell();
  });
  document.addEventListener("change", (event) => {
    if (!event.target.matches?.("[data-select-all]")) return;
    for (const box of boxes()) box.checked = event.target.checked;
    tell();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]") || !event.target.closest?.(".row-check, .bulk-bar")) return;
    for (const box of [...boxes(), all()]) if (box) box.checked = false;
    tell();
  });
  // Rows that come later belong to all that match.
  document.addEventListener("htmx:afterSettle", () => {
    if (all()?.checked) for (const box of boxes()) box.checked = true;
    tell();
  });
  // The page may have been kept by the browser while it was left.
  window.addEventListener("pageshow", tell);
}

const boxes = () => [...document.querySelectorAll(".row-check")];
const all = () => document.querySelector("[data-select-all]");

function tickBetween(from, to) {
  const rows = boxes();
  const [first, last] = [rows.indexOf(from), rows.indexOf(to)].sort((a, b) => a - b);
  for (const box of rows.slice(first, last + 1)) box.checked = to.checked;
}

// A row that is not ticked is not meant: then it is no longer all that match.
function tell() {
  const rows = boxes();
  const ticked = rows.filter((box) => box.checked).length;
  if (all()?.checked && ticked < rows.length) all().checked = false;
  const count = document.querySelector("[data-selected-count]");
  if (count) {
    const words = count.dataset.words.replace("{count}", ticked);
    count.textContent = ticked && !all()?.checked ? words : "";
  }
}
