// A question that was typed and not asked: kept for as long as the tab lives, until it is asked.
const KEY = "drafts";

export function watchDrafts() {
  restoreTyped();
  document.addEventListener("submit", ({ target }) => {
    if (target.matches("[action*='/preferences/']")) keepTyped();
  });
  const field = draftField();
  if (!field) return;
  const draft = draftsOf(field)[location.pathname] ?? "";
  const asked = [...document.querySelectorAll("#messages .question-text")].at(-1)?.textContent;
  // A question that was stored after its page had been left is no draft any more.
  if (draft && draft.trim() === asked) forgetDraft();
  else if (!field.value) field.value = draft;
  document.addEventListener("input", (event) => {
    if (event.target === draftField()) keepDraft();
  });
}

export function keepDraft() {
  keep(draftField());
}

export function forgetDraft() {
  const field = draftField();
  if (field) keep(field, "");
}

function draftField() {
  return document.querySelector("form[data-person] textarea[data-enter-sends]");
}

function keep(field, text = field.value) {
  const drafts = { ...draftsOf(field), [location.pathname]: text || undefined };
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ person: field.form.dataset.person, drafts }));
  } catch {
    // Without room, or where the browser allows none, a draft lives as long as the page.
  }
}

// A later user of the tab must not see what an earlier one was about to ask.
function draftsOf(field) {
  try {
    const stored = JSON.parse(sessionStorage.getItem(KEY));
    return stored?.person === field.form.dataset.person ? stored.drafts : {};
  } catch {
    return {};
  }
}

// What was typed in other forms outlives a change of language or appearance, which loads the page
// again, and nothing else. Passwords, tokens and codes are not kept, nor the words of a search, whose
// results the new page may not show.
const TYPED = "typed";
const TEXT = ":not([type]), [type=text], [type=search], [type=url], [type=number]";

const typedFields = () =>
  document.querySelectorAll(
    `main form[method=post] :is(textarea, input:is(${TEXT})):not([readonly], [name=code])`,
  );

function keepTyped() {
  const values = [...typedFields()].map(({ value }) => value);
  try {
    sessionStorage.setItem(TYPED, JSON.stringify({ page: location.pathname, values }));
  } catch {
    // As for drafts.
  }
}

function restoreTyped() {
  try {
    const { page, values } = JSON.parse(sessionStorage.getItem(TYPED)) ?? {};
    sessionStorage.removeItem(TYPED);
    const fields = typedFields();
    if (page !== location.pathname || values.length !== fields.length) return;
    fields.forEach((field, place) => { field.value = values[place]; });
  } catch {
    // Without a store nothing was kept.
  }
}
