import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';

/** Others may run Node and not read it, whoever built the image: see `image/build.ts`. */
const NODE = 'usr/local/lib/sandboxd/node';
const NODE_MODE = 0o111;

/**
 * Writes the tree of an image as a compressed archive that is unpacked onto `/`: of root, sorted, every entry as old as
 * `time_s`, in seconds since the epoch. The same tree gives the same bytes.
 */
export async function archiveImage(image: string, archive: string, time_s: number): Promise<void> {
  const tar = pack();
  const bytes = buffer(tar);
  const owned = { uid: 0, gid: 0, uname: 'root', gname: 'root', mtime: new Date(time_s * 1000) };
  for (const path of entriesOf(image)) {
    const stats = statSync(join(image, path));
    if (stats.isDirectory()) {
      tar.entry({ name: `${path}/`, type: 'directory', mode: 0o755, ...owned });
      continue;
    }
    const mode = path === NODE ? NODE_MODE : stats.mode & 0o777;
    tar.entry({ name: path, mode, ...owned }, readFileSync(join(image, path)));
  }
  tar.finalize();
  writeFileSync(archive, gzipSync(await bytes, { level: 9 }));
}

function entriesOf(image: string, folder = ''): string[] {
  return readdirSync(join(image, folder))
    .sort()
    .map((name) => join(folder, name))
    .flatMap((path) =>
      statSync(join(image, path)).isDirectory() ? [path, ...entriesOf(image, path)] : path,
    );
}
