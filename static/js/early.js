// Runs before the page is drawn, so that what only works with a script never flashes.
document.documentElement.classList.add("js");
// What static/js/panes.js keeps: widths of panes, and whether the list of conversations is closed.
try {
  const { isListClosed, ...widths } = JSON.parse(localStorage.getItem("panes")) ?? {};
  document.documentElement.toggleAttribute("data-list-closed", Boolean(isListClosed));
  const sheet = new CSSStyleSheet();
  const rules = Object.entries(widths).map(([id, width]) => `--${id}-width: ${Number(width)}px;`);
  sheet.replaceSync(`:root { ${rules.join(" ")} }`);
  document.adoptedStyleSheets.push(sheet);
} catch {
  // Where the browser allows no storage, panes have their usual widths.
}
