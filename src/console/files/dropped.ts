import type { Upload } from './transfers.ts';

/** The files that were dropped, those in folders with their paths below what was dropped. */
export async function uploadsOf(transfer: DataTransfer): Promise<Upload[]> {
  // The list is emptied once the event has passed.
  const found = [...transfer.items].map((item) => {
    const entry = item.webkitGetAsEntry();
    const file = entry === null ? item.getAsFile() : null;
    return entry ? walk(entry) : file ? [{ file, path: file.name }] : [];
  });
  return (await Promise.all(found)).flat();
}

/** The files of a choice: of a folder with their paths below where it lies. */
export function uploadsFrom(chosen: FileList | null): Upload[] {
  return [...(chosen ?? [])].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
}

async function walk(entry: FileSystemEntry): Promise<Upload[]> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) =>
      (entry as FileSystemFileEntry).file(resolve, reject),
    );
    return [{ file, path: entry.fullPath.replace(/^\//, '') }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const all: Upload[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (some.length === 0) return all;
    for (const each of some) all.push(...(await walk(each)));
  }
}
