// The panes of a conversation: their widths, and whether its list is closed, as they were left.
// early.js applies both before the page is drawn.
const STEP_PX = 24;
const root = document.documentElement;
const sheet = new CSSStyleSheet();
const widths = {};

export function watchPanes() {
  document.adoptedStyleSheets.push(sheet);
  for (const separator of document.querySelectorAll("[role=separator][aria-controls]")) watch(separator);
  const toggle = document.querySelector("[data-toggle-list]");
  toggle?.addEventListener("click", () => {
    const isClosed = root.toggleAttribute("data-list-closed");
    toggle.ariaExpanded = String(!isClosed);
    remember("isListClosed", isClosed);
  });
  if (toggle) toggle.ariaExpanded = String(!root.hasAttribute("data-list-closed"));
  keepScroll(document.getElementById("conversations"));
}

function watch(separator) {
  const pane = document.getElementById(separator.getAttribute("aria-controls"));
  // A pane on the right grows to the left.
  const direction = separator.nextElementSibling === pane ? -1 : 1;
  const resize = (width) => {
    const { ariaValueMin: min, ariaValueMax: max } = separator;
    separator.ariaValueNow = Math.round(Math.min(max, Math.max(min, width)));
    widths[pane.id] = separator.ariaValueNow;
    const rules = Object.entries(widths).map(([id, pixels]) => `--${id}-width: ${pixels}px;`);
    sheet.replaceSync(`:root { ${rules.join(" ")} }`);
    remember(pane.id, separator.ariaValueNow);
  };
  const measure = () => {
    if (pane.offsetWidth) separator.ariaValueNow = pane.offsetWidth;
  };
  measure();
  separator.addEventListener("focus", measure);
  separator.addEventListener("keydown", ({ key }) => {
    if (key === "ArrowLeft") resize(pane.offsetWidth - direction * STEP_PX);
    else if (key === "ArrowRight") resize(pane.offsetWidth + direction * STEP_PX);
  });
  let origin = 0;
  separator.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    separator.setPointerCapture(event.pointerId);
    origin = event.clientX - direction * pane.offsetWidth;
  });
  separator.addEventListener("pointermove", (event) => {
    if (separator.hasPointerCapture(event.pointerId)) resize(direction * (event.clientX - origin));
  });
}

function remember(name, value) {
  try {
    const panes = { ...JSON.parse(localStorage.getItem("panes")), [name]: value };
    localStorage.setItem("panes", JSON.stringify(panes));
  } catch {
    // Where the browser allows none, a width lives as long as the page.
  }
}

// The next conversation is opened from the same place of the list.
function keepScroll(list) {
  if (!list) return;
  list.scrollTop = sessionStorage.getItem("list-scroll") ?? 0;
  list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  window.addEventListener("pagehide", () => sessionStorage.setItem("list-scroll", list.scrollTop));
}
