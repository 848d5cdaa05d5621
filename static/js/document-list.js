// The list of documents, as the server has it now.
const RESULTS = "document-results";
const SHOWN = [RESULTS, "folder-tree"];
// What a refresh would take away: ticks, a question about the rows, and the order of uploads that are sent.
const IN_USE = ".row-check:checked, dialog[open], .upload-row[data-state=sending], .upload-row[data-state=waiting]";

// A window that comes to the front shows what was changed meanwhile in another one, or by another user.
export function watchList() {
  window.addEventListener("focus", () => {
    if (document.getElementById(RESULTS) && !isInUse()) refreshList();
  });
  // What a refresh read before a change would take the change away again.
  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    const results = document.getElementById(RESULTS);
    if (results && detail.requestConfig.verb !== "get") window.htmx.trigger(results, "htmx:abort");
  });
  // What is the same stays, with the focus and the pointer that are on it.
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.target.id !== RESULTS || !detail.requestConfig.headers["X-Refresh"]) return;
    const page = new DOMParser().parseFromString(detail.xhr.responseText, "text/html");
    const isSame = (id) => wordsOf(page, id) === wordsOf(document, id);
    if (isInUse() || SHOWN.every(isSame)) detail.shouldSwap = false;
  });
  // Folders to upload into and types to filter by come with the list: the chosen one stays chosen.
  document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    const { target, fragment } = detail;
    if (target.id !== "upload-into" && target.id !== "filter-type") return;
    detail.shouldSwap = false;
    const chosen = target.value;
    target.replaceChildren(...fragment.children);
    target.value = chosen;
    if (target.selectedIndex < 0) target.value = "";
  });
}

// Refresh the list and the tree of folders.
export function refreshList() {
  load(RESULTS);
}

export function refreshTree() {
  load("folder-tree");
}

// Without an entry in the history.
function load(id) {
  const options = { source: `#${id}`, target: `#${id}`, swap: "outerHTML", headers: { "X-Refresh": "true" } };
  // One that fails, as where the page is left meanwhile, leaves the list as it is.
  window.htmx.ajax("GET", location.pathname + location.search, options).catch(() => {});
}

const isInUse = () => Boolean(document.querySelector(IN_USE));
const wordsOf = (page, id) => page.getElementById(id)?.textContent.replace(/\s+/g, " ");
