// The files that were dropped; of a folder those that the portal reads.

// {files, skipped}: `skipped` is how many a folder has of other kinds, hidden, or that cannot be read.
export function readableFiles(files, accepted) {
  const kept = files.filter((file) => file && isReadable(file, accepted));
  return { files: kept, skipped: files.length - kept.length };
}

// To be called while the drop is handled: afterwards the browser has forgotten what was dropped.
export async function droppedFiles(transfer, accepted) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((entry) => entry.isDirectory)) return { files: [...transfer.files], skipped: 0 };
  const files = [];
  for (const entry of entries) {
    for await (const file of walk(entry)) files.push(file);
  }
  return readableFiles(files, accepted);
}

// The path of a file in the folder that was chosen; its name alone for a file by itself.
const pathOf = (file) => file.path || file.webkitRelativePath || file.name;

// The folders above it, separated by slashes.
export const folderOf = (file) => pathOf(file).split("/").slice(0, -1).join("/");

function isReadable(file, accepted) {
  const isHidden = pathOf(file).split("/").some((part) => part.startsWith("."));
  return !isHidden && accepted.some((suffix) => file.name.toLowerCase().endsWith(suffix));
}

// Null stands for a file or folder that cannot be read, which does not keep the others out.
async function* walk(entry) {
  if (entry.isFile) {
    const file = await new Promise((done) => entry.file(done, () => done(null)));
    yield file && Object.assign(file, { path: entry.fullPath.slice(1) });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    // A hundred at a time, and an empty list at the end.
    const entries = await new Promise((done) => reader.readEntries(done, () => done(null)));
    if (!entries) yield null;
    if (!entries?.length) return;
    for (const child of entries) yield* walk(child);
  }
}
