// The field of a question: Enter asks, Shift+Enter begins a new line.
const MAX_ROWS = 12;
const FIELDS = "textarea[data-enter-sends]";

export function watchComposing() {
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest?.(FIELDS);
    if (!field || event.key !== "Enter") return;
    // Enter that chooses among the words of an input method is not Enter. Safari has ended the
    // composition by then; only the old key code tells.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    if (field.value.trim()) field.form.requestSubmit();
  });
  for (const field of document.querySelectorAll(FIELDS)) grow(field);
  document.addEventListener("input", ({ target }) => target.matches?.(FIELDS) && grow(target));
  // A question that is to be edited has just come.
  document.addEventListener("htmx:afterSettle", (event) => {
    const field = event.target.querySelector?.(".chat-form-edit textarea");
    if (!field) return;
    grow(field);
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  });
}

// As high as its text, for browsers whose style sheets cannot say so.
export function grow(field) {
  if (CSS.supports("field-sizing: content")) return;
  const { lineHeight, paddingTop, paddingBottom } = getComputedStyle(field);
  field.rows = 1;
  const height = field.scrollHeight - parseFloat(paddingTop) - parseFloat(paddingBottom);
  field.rows = Math.min(MAX_ROWS, Math.max(1, Math.round(height / parseFloat(lineHeight))));
}
