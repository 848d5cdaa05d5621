// "@" in the field of a question completes documents, folders and tags that it is to be about.
// A mark in an address or after a letter is none; Chinese is written without spaces before it.
const TYPED = /(?:^|[^\w.@＠-])[@＠]((?:[^\s@＠][^@＠\n]{0,59})?)$/u;
let waiting = false;
let choosesFirst = false;

export function watchCompleting() {
  document.addEventListener("input", (event) => {
    if (!event.isComposing) look(event.target);
  });
  document.addEventListener("compositionend", (event) => look(event.target));
  document.addEventListener("keydown", press, true);
  document.addEventListener("focusout", (event) => {
    if (event.target === field()) close();
  });
  // Names for words that have changed since, or for a list that was closed, come too late.
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.target === list() && !isAwaited(detail)) detail.shouldSwap = false;
  });
  document.addEventListener("htmx:afterSettle", ({ detail }) => {
    if (detail.target === list() && isAwaited(detail)) show();
  });
  document.addEventListener("htmx:sendError", close);
  document.addEventListener("htmx:responseError", close);
  // The field keeps the focus.
  document.addEventListener("mousedown", (event) => {
    if (event.target.closest("#about-list")) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const option = event.target.closest(".about-option");
    const remove = event.target.closest("[data-about] button[name=drop]");
    if (option) choose(option);
    if (!remove) return;
    event.preventDefault();
    const form = remove.form;
    remove.parentElement.remove();
    form.elements.content.focus();
  });
}

export function clearAbout(form) {
  form.querySelector("[data-about]")?.replaceChildren();
}

const list = () => document.getElementById("about-list");
const sought = () => document.getElementById("about-find");
const options = () => [...document.querySelectorAll(".about-option")];
const chosen = () => document.querySelector(".about-option[aria-selected=true]");
const isAwaited = ({ requestConfig }) => waiting && requestConfig.parameters.find === sought().value;

function field() {
  return list()?.closest("form").elements.content;
}

function typed() {
  const { value, selectionStart } = field();
  return TYPED.exec(value.slice(0, selectionStart))?.[1];
}

function look(target) {
  if (!list() || target !== field()) return;
  const words = typed();
  if (words === undefined) return close();
  waiting = true;
  choosesFirst = false;
  sought().value = words;
  window.htmx.trigger(list(), "find-about");
}

function show() {
  const [first] = options();
  if (!first || typed() === undefined) {
    const isSent = choosesFirst;
    close();
    if (isSent) field().form.requestSubmit();
    return;
  }
  waiting = false;
  list().hidden = false;
  field().setAttribute("aria-controls", "about-options");
  document.getElementById("about-status").textContent = list().firstElementChild.dataset.status;
  mark(first);
  if (choosesFirst) choose(first);
}

function close() {
  waiting = false;
  choosesFirst = false;
  if (!list()) return;
  list().hidden = true;
  list().replaceChildren();
  document.getElementById("about-status").textContent = "";
  field().removeAttribute("aria-controls");
  field().removeAttribute("aria-activedescendant");
}

function mark(option) {
  chosen()?.setAttribute("aria-selected", "false");
  option.setAttribute("aria-selected", "true");
  option.scrollIntoView({ block: "nearest" });
  field().setAttribute("aria-activedescendant", option.id);
}

function press(event) {
  // Keys that choose among the words of an input method are none of ours.
  if (event.isComposing || event.keyCode === 229 || event.target !== field()) return;
  if (event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
  const isOpen = list() && !list().hidden;
  if (!isOpen && !waiting) return;
  const all = options();
  const at = all.indexOf(chosen());
  if (event.key === "Escape") close();
  else if (event.key === "Enter" || (event.key === "Tab" && isOpen)) {
    // What was typed last has not been looked up yet.
    if (waiting) choosesFirst = true;
    else choose(chosen());
  } else if (isOpen && event.key === "ArrowDown") mark(all[(at + 1) % all.length]);
  else if (isOpen && event.key === "ArrowUp") mark(all.at(at - 1));
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function choose(option) {
  const input = field();
  const end = input.selectionStart;
  const start = end - typed().length - 1;
  const chip = option.querySelector("template").content.cloneNode(true);
  const chips = input.form.querySelector("[data-about]");
  const known = [...chips.querySelectorAll("input")].map((one) => one.value);
  if (!known.includes(chip.querySelector("input").value)) chips.append(chip);
  input.setRangeText("", start, end, "end");
  close();
  input.dispatchEvent(new Event("input", { bubbles: true }));
}
