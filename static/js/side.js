// What opens beside a conversation: a source, the sources of an answer, or document switches. Each
// has an address, which Back and Forward return to.
const PANES = ["source", "sources", "at", "documents", "page"];
let opener = null;

export function watchSide() {
  const side = document.getElementById("chat-side");
  if (!side) return;
  const { pathname } = location;
  document.addEventListener("htmx:beforeRequest", (event) => {
    const { elt, target } = event.detail;
    if (target !== side) return;
    if (!side.contains(elt)) opener = elt;
    // On phones the list is a sheet while it is the target of the address.
    if (document.querySelector(".chat-list:target")) location.hash = "main";
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target === side) open(side);
  });
  // The address changes after the swap.
  document.addEventListener("htmx:pushedIntoHistory", () => {
    side.dataset.shown = shown();
  });
  document.addEventListener("click", (event) => {
    if (side.hidden || !event.target.closest("[data-close-side]")) return;
    event.preventDefault();
    leave(side);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || side.hidden || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    leave(side);
  });
  // htmx would load the whole page; only the pane differs, and the conversation keeps its place.
  window.addEventListener(
    "popstate",
    (event) => {
      if (location.pathname !== pathname) return;
      event.stopImmediatePropagation();
      if (!shown()) close(side);
      else if (side.dataset.shown !== shown()) {
        side.dataset.shown = shown();
        window.htmx.ajax("GET", location.pathname + location.search, { target: side });
      }
    },
    { capture: true },
  );
  side.dataset.shown = shown();
  if (!side.hidden) scrollToQuote(side);
}

// What the address says is in the pane; the page that is read there is no other content.
const shown = () => {
  const values = new URLSearchParams(location.search);
  return PANES.slice(0, -1).map((name) => values.get(name) ?? "").join("").trim();
};

function open(side) {
  side.hidden = false;
  scrollToQuote(side);
  const focus = side.querySelector("[data-at] a, #side-title");
  focus?.focus({ preventScroll: true });
}

function scrollToQuote(side) {
  const wanted = side.querySelector("[data-at], .quote") ?? side.querySelector("[data-focus]");
  side.scrollTop = 0;
  if (!wanted) return;
  const top = wanted.getBoundingClientRect().top - side.getBoundingClientRect().top;
  // What is in sight stays where it is, below the whole of the head.
  side.scrollTop = top > side.clientHeight * 0.8 ? top - side.clientHeight / 2 : 0;
}

function leave(side) {
  close(side);
  if (!shown()) return;
  const address = new URL(location);
  for (const name of PANES) address.searchParams.delete(name);
  address.hash = "";
  history.pushState({ htmx: true }, "", address);
}

function close(side) {
  const shown = side.querySelector("[data-source]")?.dataset.source;
  side.hidden = true;
  side.dataset.shown = "";
  side.replaceChildren();
  // The answer may have been replaced meanwhile; its marker has the same id again.
  const back = opener?.isConnected ? opener : document.getElementById(opener?.id || `marker-${shown}`);
  (back ?? document.getElementById("chat-input"))?.focus({ preventScroll: true });
  opener = null;
}
