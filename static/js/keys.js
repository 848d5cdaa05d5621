// Keys that work on every page: Ctrl+K goes anywhere, "?" shows the keys. Both are links as well.
export function watchKeys() {
  document.addEventListener("keydown", (event) => {
    const isField = event.target.closest?.("input, textarea, select, [contenteditable]");
    const isGo = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k";
    if (isGo) {
      event.preventDefault();
      toggle("[data-go]", "go");
    } else if (event.key === "?" && !isField && !event.ctrlKey && !event.metaKey) {
      toggle("[data-keys]", "keys");
    }
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches(".dialog .go-search")) return;
    event.preventDefault();
    document.querySelector(".dialog [data-go-item]")?.click();
  });
}

function toggle(link, name) {
  const dialog = document.getElementById("dialog");
  // A dialog that has just been closed is emptied a moment later.
  const isShown = dialog.open && dialog.querySelector(`[data-shows=${name}]`);
  if (dialog.open) dialog.close();
  if (!isShown) document.querySelector(link)?.click();
}
