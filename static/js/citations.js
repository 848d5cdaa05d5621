// The card of a marker: shown while the pointer or the keyboard rests on it.
const WAIT_MS = 80;
const LEAVE_MS = 150;
const cards = new Map();
let shown = null;
let timer = null;

export function watchCitations() {
  const card = document.getElementById("citation-card");
  if (!card) return;

  const later = (action, wait) => {
    clearTimeout(timer);
    timer = setTimeout(action, wait);
  };
  const marker = (event) => event.target.closest?.(".citation-marker");
  document.addEventListener("pointerover", (event) => {
    if (marker(event)) later(() => show(card, marker(event)), WAIT_MS);
    else if (event.target.closest?.(".citation-card")) clearTimeout(timer);
  });
  document.addEventListener("pointerout", (event) => {
    if (marker(event) || event.target.closest?.(".citation-card")) {
      later(() => hide(card), LEAVE_MS);
    }
  });
  document.addEventListener("focusin", (event) => {
    if (marker(event)?.matches(":focus-visible")) show(card, marker(event));
  });
  document.addEventListener("focusout", (event) => marker(event) && hide(card));
  document.addEventListener("click", (event) => marker(event) && hide(card));
  document.addEventListener("keydown", (event) => {
    // Escape takes away what is on top: the card first, the panel with the next one.
    if (event.key === "Escape" && !card.hidden) {
      hide(card);
      event.preventDefault();
    }
  });
}

async function show(card, marker) {
  clearTimeout(timer);
  shown = marker;
  // The browser's own hint would cover the card.
  marker.removeAttribute("title");
  const content = await load(marker.dataset.card);
  if (shown !== marker || !marker.isConnected || !content) return;
  card.replaceChildren(content.cloneNode(true));
  card.hidden = false;
  // The style sheet places the card beside the marker that it describes.
  marker.setAttribute("aria-describedby", card.id);
}

function hide(card) {
  clearTimeout(timer);
  shown?.removeAttribute("aria-describedby");
  shown = null;
  card.hidden = true;
}

async function load(address) {
  if (!cards.has(address)) cards.set(address, fetchCard(address));
  const content = await cards.get(address);
  // What failed is asked for again the next time.
  if (!content) cards.delete(address);
  return content;
}

async function fetchCard(address) {
  try {
    const response = await fetch(address, { headers: { "HX-Request": "true" } });
    if (!response.ok) return null;
    const body = new DOMParser().parseFromString(await response.text(), "text/html").body;
    return body.firstElementChild;
  } catch {
    return null;
  }
}
