// Files that failed, for as long as the tab lives: their rows stay until they are dismissed, also
// when the page is left or reloaded. The files themselves are gone then, and chosen again.
const KEY = "failed-uploads";
const MOST = 200;

export function rememberFailed(person, items) {
  const kept = items
    .filter((item) => !item.content)
    .slice(0, MOST)
    .map(({ file, row, message }) => ({
      name: file.name,
      size: file.size,
      message: row?.querySelector(".upload-item-state").textContent || message,
    }));
  try {
    if (kept.length) sessionStorage.setItem(KEY, JSON.stringify({ person, kept }));
    else sessionStorage.removeItem(KEY);
  } catch {
    // Without room, or where the browser allows none, rows live as long as the page.
  }
}

// A later user of the tab must not see what an earlier one tried to upload.
export function failedBefore(person) {
  const stored = read();
  if (stored?.person !== person || !Array.isArray(stored.kept)) return [];
  return stored.kept.map(({ name, size, message }) => ({
    file: { name, size },
    message,
    fields: [],
    state: "failed",
    share: 0,
    canRetry: false,
    isOld: true,
  }));
}

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY));
  } catch {
    return null;
  }
}
