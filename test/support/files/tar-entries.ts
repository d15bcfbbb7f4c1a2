import { buffer } from 'node:stream/consumers';
import { type Header, pack } from 'tar-stream';

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
