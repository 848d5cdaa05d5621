// The files that somebody chose or dropped; of a folder those that the portal reads.

// {files, leftOut}: `leftOut` is how many a folder has of other kinds, or hidden.
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
    if (entry.isFile) {
      found.files.push(await fileOf(entry));
    } else {
      const inside = wanted(await inFolder(entry), accepted, (file) => file.path ?? file.name);
      found.files.push(...inside.files);
      found.leftOut += inside.leftOut;
    }
  }
  return found;
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

async function inFolder(folder) {
  const files = [];
  const folders = [folder];
  while (folders.length) {
    for (const entry of await entriesOf(folders.shift())) {
      if (entry.isDirectory) {
        folders.push(entry);
      } else {
        const file = await fileOf(entry);
        file.path = entry.fullPath.slice(1);
        files.push(file);
      }
    }
  }
  return files;
}

// A folder gives its entries a hundred at a time, and an empty list at its end.
async function entriesOf(folder) {
  const reader = folder.createReader();
  const entries = [];
  for (;;) {
    const some = await new Promise((done) => reader.readEntries(done, () => done([])));
    if (!some.length) return entries;
    entries.push(...some);
  }
}

function fileOf(entry) {
  return new Promise((done, fail) => entry.file(done, fail));
}
