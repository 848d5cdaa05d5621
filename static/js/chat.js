// A conversation: questions are sent, and answers shown while they are written.
import { clearAbout } from "./completing.js";
import { grow } from "./composing.js";
import { forgetDraft, keepDraft } from "./drafts.js";
import { readEvents } from "./event-stream.js";
import { offersSignIn } from "./session.js";
import { showToast } from "./toasts.js";

const PENDING = "portal.question";
const AT_END = "portal.at-end";
const UNDER_WAY = "portal.under-way";
const NEAR_END_PX = 160;
const RETRY_MS = 600;
const MAX_ATTEMPTS = 8;
const HEADERS = { "HX-Request": "true" };
const SEARCH_MS = 1500;
let running = null;

export function watchChat() {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("form[data-begin]")) begin(event, form);
    if (form.matches("form[data-ask]")) {
      event.preventDefault();
      if (!running) ask(form);
      else if (form.id === "ask-form") document.getElementById("chat-waiting").hidden = false;
    }
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-stop]")) return;
    stop();
    // A phone's keyboard would cover the answer.
    if (event.pointerType !== "touch") document.getElementById("chat-input").focus({ preventScroll: true });
  });
  // What was wrong with an answer is asked below it, where the field of the next question may lie.
  document.addEventListener("htmx:afterSettle", ({ target }) => {
    if (target.matches?.(".feedback")) target.querySelector(".feedback-reasons")?.scrollIntoView({ block: "nearest" });
  });
  showLatest();
  showMarkedCells(document);
  if (document.getElementById("messages")) {
    keepToEnd();
    keepCurrent();
    // The page was left before the server had answered: it stores the question all the same.
    if (sessionStorage.getItem(UNDER_WAY) === location.pathname) showStored(typed());
    sessionStorage.removeItem(UNDER_WAY);
  }
  askPending();
}

// A conversation opens at its last question, unless the address or the browser knows better.
function showLatest() {
  const [arrival] = performance.getEntriesByType("navigation");
  if (location.hash || location.search || arrival?.type !== "navigate") return;
  const questions = document.querySelectorAll("#messages .message-user");
  if (questions.length > 1) questions[questions.length - 1].scrollIntoView();
}

// A window that comes to the front shows what was asked meanwhile in another one.
function keepCurrent() {
  const isInUse = () => running || document.querySelector("dialog[open], .message-edited, .message-pending");
  window.addEventListener("focus", () => {
    if (isInUse()) return;
    const options = { source: "#messages", target: "#messages", select: "#messages", swap: "outerHTML show:none" };
    window.htmx.ajax("GET", location.pathname, options).catch(() => {});
  });
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.target.id !== "messages") return;
    const [now, before] = [parseAll(detail.xhr.responseText), [document.body]].map(messagesIn);
    if (isInUse() || !now || now === before) detail.shouldSwap = false;
  });
}

const messagesIn = (nodes) =>
  nodes
    .flatMap((node) => [...(node.querySelectorAll?.("#messages > .message") ?? [])])
    .map(({ id, dataset }) => id + dataset.status)
    .join();

// A reader at the end stays there: over a reload, and while an answer that was being written
// before it is asked for again.
function keepToEnd() {
  const [arrival] = performance.getEntriesByType("navigation");
  const wasAtEnd = sessionStorage.getItem(AT_END) === location.pathname;
  if (arrival?.type === "reload" && wasAtEnd) window.addEventListener("pageshow", toEnd);
  window.addEventListener("pagehide", () => {
    sessionStorage.setItem(AT_END, isAtEnd() ? location.pathname : "");
  });
  let follows = false;
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    follows = detail.target.matches(".message[data-status=streaming]") && isAtEnd();
  });
  document.addEventListener("htmx:afterSwap", () => follows && toEnd());
}

// The first question: make a conversation, go there, and ask it there.
async function begin(event, form) {
  event.preventDefault();
  const question = form.elements.content.value;
  if (!question.trim() || form.dataset.busy) return;
  form.dataset.busy = "true";
  try {
    const data = new FormData(form);
    data.delete("content");
    const response = await fetch(form.action, { method: "POST", body: data, headers: HEADERS });
    const address = response.headers.get("HX-Redirect");
    if (offersSignIn(response, () => form.requestSubmit())) return;
    if (!address) return showProblem(response);
    forgetDraft();
    sessionStorage.setItem(PENDING, JSON.stringify({ address, question }));
    location.assign(address);
  } catch {
    showToast("toast-unreachable");
  } finally {
    delete form.dataset.busy;
  }
}

function askPending() {
  const form = document.getElementById("ask-form");
  const kept = sessionStorage.getItem(PENDING);
  if (!form || !kept) return;
  sessionStorage.removeItem(PENDING);
  const { address, question } = JSON.parse(kept);
  const isHere = new URL(address, location.href).pathname === location.pathname;
  if (!isHere || document.querySelector("#messages .message")) return;
  history.replaceState(null, "", location.pathname);
  form.elements.content.value = question;
  keepDraft();
  ask(form);
}

async function ask(form) {
  const field = form.elements.content;
  const question = field?.value;
  if (field && !question.trim()) return;
  const controller = new AbortController();
  running = { form, question, controller, answer: null, isDone: false, isStopped: false, typed: "" };
  const run = running;
  const data = new FormData(form);
  showRunning(true);
  showPending(form, question);
  try {
    const headers = { ...HEADERS, Accept: "text/event-stream" };
    const options = { method: "POST", body: data, headers };
    sessionStorage.setItem(UNDER_WAY, location.pathname);
    const response = await fetch(form.action, { ...options, signal: controller.signal });
    sessionStorage.removeItem(UNDER_WAY);
    if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
      if (offersSignIn(response, () => form.requestSubmit())) return;
      return await showProblem(response);
    }
    if (field && form.id === "ask-form" && !run.isStopped) {
      forgetDraft();
      clearAbout(form);
    }
    await readEvents(response, (name, values) => take(run, form, name, values));
  } catch (error) {
    if (error.name !== "AbortError") showToast("toast-unreachable");
  } finally {
    end(run);
    if (!run.answer && !run.isStopped) hidePending(form, question);
    if (run.answer && !run.isDone) await settle(run).then(askWaiting);
    if (run.isStopped) showStored(run.typed);
    if (field && form.id === "ask-form" && !isElsewhere(form)) field.focus({ preventScroll: true });
  }
}

// A reader who has gone on to something else while the answer was being written keeps the keyboard there.
const isElsewhere = (form) => document.activeElement !== document.body && !form.contains(document.activeElement);

// The question stands where it will stay before the server has said anything.
function showPending(form, question) {
  const pending = document.getElementById("chat-pending").content.cloneNode(true);
  const asked = pending.querySelector(".message-user");
  if (question === undefined) asked.remove();
  else asked.querySelector(".question-text").textContent = question;
  document.getElementById("messages").append(pending);
  document.querySelector(".chat-start")?.setAttribute("hidden", "");
  if (form.id === "ask-form") {
    form.elements.content.value = "";
    grow(form.elements.content);
  }
  toEnd();
}

function hidePending(form, question) {
  for (const part of document.querySelectorAll(".message-pending")) part.remove();
  const field = form.elements.content;
  if (form.id !== "ask-form" || field.value) return;
  field.value = question;
  grow(field);
}

function take(run, form, name, values) {
  if (run.isStopped) {
    const answer = parseAll(values.html ?? "").find((node) => node.dataset?.stopAddress);
    if (answer) tellStopped(run, answer);
    return;
  }
  const wasAtEnd = isAtEnd();
  if (name === "begun") showBegun(run, form, values);
  else if (name === "searched") text(run)?.insertAdjacentHTML("beforebegin", values.html);
  else if (name === "html") text(run).replaceChildren(...parseAll(values.html));
  else if (name === "text") lastBlock(text(run)).append(values.text);
  else if (name === "done") {
    run.isDone = true;
    showDone(run, values);
  } else if (name === "error") {
    document.getElementById("notifications").insertAdjacentHTML("beforeend", values.html);
  }
  if (name !== "begun" && wasAtEnd) toEnd();
}

function showBegun(run, form, values) {
  const messages = document.getElementById("messages");
  for (const part of messages.querySelectorAll(".message-pending")) part.remove();
  const replaced = document.getElementById(form.dataset.replaces ?? "");
  while (replaced?.nextElementSibling) replaced.nextElementSibling.remove();
  replaced?.remove();
  for (const message of parseAll(values.html)) {
    if (!(message instanceof Element)) continue;
    document.getElementById(message.id)?.remove();
    messages.append(message);
    window.htmx.process(message);
  }
  run.answer = document.getElementById(`message-${values.answer}`);
  document.querySelector(".chat-start")?.setAttribute("hidden", "");
  rename(values.title);
  document.querySelector(".conversation-row:has([aria-current]) .hint")?.replaceWith(parse(values.use));
  say("writing");
  toEnd();
}

// What is complete makes way for the next question, before the connection is closed.
function end(run) {
  if (running !== run) return;
  running = null;
  showRunning(false);
}

function showDone(run, values) {
  end(run);
  show(run, parse(values.html));
  rename(values.title);
  say("finished");
  askWaiting();
}

// What was sent while an answer was being written waits in the field until that one is complete.
function askWaiting() {
  const waiting = document.getElementById("chat-waiting");
  if (running || waiting.hidden) return;
  waiting.hidden = true;
  document.getElementById("ask-form").requestSubmit();
}

function rename(title) {
  const shown = document.getElementById("conversation-title");
  if (!shown || !title || shown.textContent === title) return;
  const before = shown.textContent;
  document.title = document.title.replace(before, () => title);
  shown.textContent = title;
  // Its buttons, in the head and in the list, are called after it.
  const tools = ".chat-head [aria-label], .conversation-row:has([aria-current]) [aria-label]";
  for (const tool of document.querySelectorAll(tools)) tool.ariaLabel = tool.ariaLabel.replace(before, () => title);
  const row = document.querySelector(".chat-list [aria-current]");
  if (row) row.textContent = title;
}

function stop() {
  const run = running;
  if (!run) return;
  say("stopped");
  if (run.answer) return tellStopped(run, run.answer);
  // It has no name yet, by which the server could be told.
  run.isStopped = true;
  end(run);
  hidePending(run.form, run.question);
  run.typed = typed();
}

// Quotations are finished without a reader, unless the server knows that they are not wanted.
async function tellStopped(run, answer) {
  const options = { method: "POST", body: new FormData(), headers: HEADERS, signal: AbortSignal.timeout(SEARCH_MS) };
  options.body.append("csrf_token", document.querySelector("#ask-form [name=csrf_token]").value);
  await fetch(answer.dataset.stopAddress, options).catch(() => {});
  run.controller.abort();
}

// The stream ended before the answer did: show what the server kept of it. The server
// notices within a second or so, so that it is asked again while it has less than we show.
async function settle(run) {
  const address = run.answer.dataset.stopAddress.replace(/\/stop$/, "");
  const shown = run.answer.querySelector(".answer-text").textContent.trim().length;
  try {
    for (let attempts = 0; ; attempts += 1) {
      const response = await fetch(address, { headers: HEADERS });
      if (!response.ok) return await showProblem(response);
      const kept = parse(await response.text());
      const length = kept.querySelector(".answer-text").textContent.trim().length;
      if (length >= shown || attempts === MAX_ATTEMPTS) return show(run, kept);
      await pause(RETRY_MS);
    }
  } catch {
    showToast("toast-unreachable");
  }
}

// Stopped or left while it was still searching: the question is kept, and shown once it is stored, but
// not at the cost of what is typed or asked meanwhile.
async function showStored(before) {
  for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
    await pause(SEARCH_MS);
    if (running || typed() !== before) return;
    const page = await fetch(location.pathname).then((response) => response.text(), () => null);
    if (page && messagesIn(parseAll(page)) !== messagesIn([document.body])) return location.reload();
  }
}

const typed = () => document.getElementById("chat-input").value;
const pause = (duration) => new Promise((later) => setTimeout(later, duration));

function show(run, message) {
  run.answer.replaceWith(message);
  window.htmx.process(message);
  showMarkedCells(message);
  run.answer = message;
}

// The cell that answers may lie beyond the edge of a wide table, whose first column stays.
function showMarkedCells(within) {
  for (const table of within.querySelectorAll(".answer-text table")) {
    const cell = table.querySelector("td > strong")?.parentElement;
    if (cell && cell.offsetLeft + cell.offsetWidth > table.clientWidth) {
      table.scrollLeft = cell.offsetLeft - table.rows[0].cells[0].offsetWidth;
    }
  }
}

function parseAll(html) {
  return [...new DOMParser().parseFromString(html, "text/html").body.childNodes];
}

function parse(html) {
  return parseAll(html).find((node) => node instanceof Element);
}

async function showProblem(response) {
  const elsewhere = response.headers.get("HX-Redirect");
  if (elsewhere) return location.assign(elsewhere);
  const toast = parseAll(await response.text()).find((node) => node.matches?.(".toast"));
  if (toast) document.getElementById("notifications").append(toast);
  else showToast("toast-unexpected");
}

function showRunning(isRunning) {
  document.querySelector("[data-stop]")?.toggleAttribute("hidden", !isRunning);
  document.querySelector("#ask-form .chat-send")?.toggleAttribute("hidden", isRunning);
  document.getElementById("messages")?.toggleAttribute("data-running", isRunning);
}

function say(key) {
  const status = document.getElementById("chat-status");
  if (status) status.textContent = document.getElementById("chat-words").dataset[key];
}

function text(run) {
  run.answer?.querySelector(".answer-waiting")?.remove();
  return run.answer?.querySelector(".answer-text");
}

// Where the words go on: inside the last paragraph or item, not after it.
function lastBlock(element) {
  let block = element;
  while (block.lastElementChild?.matches("p, ul, ol, li, blockquote, h3, h4, h5, h6")) {
    block = block.lastElementChild;
  }
  return block;
}

function isAtEnd() {
  const page = document.documentElement;
  return page.scrollHeight - window.scrollY - window.innerHeight < NEAR_END_PX;
}

function toEnd() {
  window.scrollTo({ top: document.documentElement.scrollHeight });
}
