// The files that were chosen or dropped; of a folder those that the portal reads.

// {files, leftOut}: `leftOut` is how many a folder has of other kinds, hidden, or that cannot be
// read.
export function filesOf(input) {
  return { files: [...input.files], leftOut: 0 };
}

export function filesOfFolder(input, accepted) {
  return wanted([...input.files], accepted, (file) => file.webkitRelativePath || file.name);
}

// To be called while the drop is handled: afterwards the browser has forgotten what was dropped.
export async function filesDropped(transfer, accepted) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((entry) => entry.isDirectory)) {
    return { files: [...transfer.files], leftOut: 0 };
  }
  const found = { files: [], leftOut: 0 };
  for (const entry of entries) {
    const { files, leftOut } = await (entry.isFile ? alone(entry) : inFolder(entry, accepted));
    found.files.push(...files);
    found.leftOut += leftOut;
  }
  return found;
}

// The folders above a file in what was chosen, such as "contracts/2026"; empty for a file by itself.
export function folderOf(file) {
  return (file.path || file.webkitRelativePath || "").split("/").slice(0, -1).join("/");
}

// Suffixes in lower case, such as ".pdf".
export function acceptedSuffixes(input) {
  return input.accept.split(",").filter((kind) => kind.startsWith("."));
}

function wanted(files, accepted, pathOf) {
  const kept = files.filter((file) => {
    const path = pathOf(file);
    const isHidden = path.split("/").some((part) => part.startsWith("."));
    return !isHidden && accepted.some((suffix) => file.name.toLowerCase().endsWith(suffix));
  });
  return { files: kept, leftOut: files.length - kept.length };
}

async function alone(entry) {
  const file = await fileOf(entry);
  return file ? { files: [file], leftOut: 0 } : { files: [], leftOut: 1 };
}

// One that cannot be read, file or folder, does not keep the others out.
async function inFolder(folder, accepted) {
  const files = [];
  const folders = [folder];
  let unreadable = 0;
  while (folders.length) {
    const { entries, isWhole } = await entriesOf(folders.shift());
    if (!isWhole) unreadable += 1;
    folders.push(...entries.filter((entry) => entry.isDirectory));
    for (const entry of entries.filter((one) => one.isFile)) {
      const file = await fileOf(entry);
      if (file) files.push(Object.assign(file, { path: entry.fullPath.slice(1) }));
      else unreadable += 1;
    }
  }
  const { files: kept, leftOut } = wanted(files, accepted, (file) => file.path);
  return { files: kept, leftOut: leftOut + unreadable };
}

// A folder gives its entries a hundred at a time, and an empty list at its end.
async function entriesOf(folder) {
  const reader = folder.createReader();
  const entries = [];
  for (;;) {
    const some = await new Promise((done) => reader.readEntries(done, () => done(null)));
    if (!some?.length) return { entries, isWhole: some !== null };
    entries.push(...some);
  }
}

// Null where it cannot be read.
function fileOf(entry) {
  return new Promise((done) => entry.file(done, () => done(null)));
}
