// The keyboard in searches and in Ctrl+K: "/" goes to the field, arrows from result to result, and
// characters that an input method is still composing are not searched for.
// On the front door what is typed as a question is searched for meanwhile.
const FIELDS = "#search-input, #header-search-input, #chat-input";

export function watchSearching() {
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && !event.target.closest("input, textarea, select, [contenteditable]")) {
      const field = document.querySelector(FIELDS);
      if (!field || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      field.select();
      field.focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const links = [...document.querySelectorAll("[data-result]")];
      step(event, [document.getElementById("search-input"), ...links.filter((link) => link.checkVisibility())]);
      step(event, [document.getElementById("go-text"), ...document.querySelectorAll("[data-go-item]")]);
    }
  });
  // Back returns to weaker matches that were unfolded.
  document.addEventListener("click", ({ target }) => {
    const fold = target.closest(".weaker > summary")?.parentElement;
    if (!fold) return;
    const here = new URL(location);
    if (fold.open) here.searchParams.delete("weaker");
    else here.searchParams.set("weaker", "1");
    history.replaceState(history.state, "", here);
  });
  document.addEventListener("input", (event) => {
    if (event.isComposing && event.target.id === "search-input") event.stopImmediatePropagation();
  }, true);
  document.addEventListener("htmx:beforeRequest", (event) => {
    const { target } = event.detail;
    // Narrow windows have no room beside the results.
    if (target?.id === "search-preview" && !target.checkVisibility()) event.preventDefault();
  });
  document.addEventListener("htmx:afterSwap", ({ detail: { target } }) => {
    if (target?.id !== "search-preview") return;
    const found = target.querySelector(".is-chosen, #found");
    const below = found?.getBoundingClientRect().top - target.getBoundingClientRect().top;
    target.scrollTop = below > target.clientHeight / 2 ? below - target.clientHeight / 3 : 0;
  });
  // "Show more" goes with the list above it: the first result that is new takes the keyboard over.
  document.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
    if (!document.activeElement.closest("#search-results .load-more")) return;
    const known = target.querySelectorAll("[data-result]").length;
    const focus = () => document.querySelectorAll("[data-result]")[known]?.focus({ preventScroll: true });
    requestAnimationFrame(() => requestAnimationFrame(focus));
  });
  document.addEventListener("compositionend", ({ target }) => {
    if (target.id === "search-input") target.dispatchEvent(new Event("input", { bubbles: true }));
    else find(target);
  });
  document.addEventListener("input", (event) => {
    if (!event.isComposing) find(event.target);
  });
}

function find(field) {
  const form = field.id === "chat-input" && field.closest("form[hx-trigger^=find]");
  if (form) window.htmx.trigger(form, "find");
}

// From the field to what was found beneath it, and back.
function step(event, stops) {
  const at = stops.indexOf(event.target);
  if (at < 0) return;
  event.preventDefault();
  stops[event.key === "ArrowDown" ? at + 1 : at - 1]?.focus();
}
