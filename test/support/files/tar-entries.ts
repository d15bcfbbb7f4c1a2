import { buffer } from 'node:stream/consumers';
import { type Header, pack } from 'tar-stream';

const BLOCK_BYTES = 512;

/** What an entry's header says; the rest is made up. */
type GivenHeader = Partial<Header> & { name: string; pax?: Record<string, string> };

/** An entry: a name alone is a file, one with a slash at its end a directory, `name -> target` a link, `name = of` a hard link. */
export type GivenEntry = string | [header: GivenHeader, content: string | Buffer];

/** An archive of these entries. */
export async function tarOf(entries: readonly GivenEntry[]): Promise<Buffer> {
  const archive = pack();
  for (const entry of entries) {
    if (typeof entry === 'string') archive.entry(headerOf(entry) as Header, '');
    else archive.entry(entry[0] as Header, entry[1]);
  }
  archive.finalize();
  return buffer(archive);
}

function headerOf(entry: string): GivenHeader {
  const [link, target] = entry.split(' -> ');
  if (target !== undefined) return { name: link ?? '', type: 'symlink', linkname: target };
  const [name, of] = entry.split(' = ');
  if (of !== undefined) return { name: name ?? '', type: 'link', linkname: of };
  return { name: entry, type: entry.endsWith('/') ? 'directory' : 'file' };
}

/** Changes the first header of an archive, and its sum. */
export function changed(
  archive: Buffer,
  at: number,
  text: string,
  sum = (bytes: Uint8Array) => sumOf(bytes),
): Buffer {
  const copy = Buffer.from(archive);
  copy.write(text, at, 'latin1');
  copy.write('        ', 148, 'latin1');
  copy.write(`${sum(copy.subarray(0, BLOCK_BYTES)).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return copy;
}

/** The sum of bytes. */
export function sumOf(bytes: Iterable<number>): number {
  let sum = 0;
  for (const byte of bytes) sum += byte;
  return sum;
}
