// What opens beside a conversation: the sources of an answer, or the switches of its documents.
let opener = null;

export function watchSide() {
  const side = document.getElementById("chat-side");
  if (!side) return;
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.target === side) opener = event.detail.elt;
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target === side) open(side);
  });
  side.addEventListener("click", (event) => {
    if (!event.target.closest("[data-close-side]")) return;
    event.preventDefault();
    close(side);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || side.hidden || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    close(side);
  });
}

function open(side) {
  side.hidden = false;
  const wanted = side.querySelector("[data-at]");
  side.scrollTop = 0;
  if (wanted) {
    const top = wanted.getBoundingClientRect().top - side.getBoundingClientRect().top;
    side.scrollTop = top - side.clientHeight / 4;
  }
  const focus = wanted?.querySelector("a") ?? side.querySelector("#side-title");
  focus?.focus({ preventScroll: true });
}

function close(side) {
  side.hidden = true;
  side.replaceChildren();
  // The answer may have been replaced meanwhile; its marker has the same id again.
  const back = opener?.isConnected ? opener : document.getElementById(opener?.id ?? "");
  (back ?? document.getElementById("chat-input"))?.focus({ preventScroll: true });
  opener = null;
}
