import { isUtf8 } from 'node:buffer';
import type { Stats } from 'node:fs';
import type { BytePath } from '../byte-path.ts';
import { MODE_BITS } from '../mode.ts';

/** Tar files consist of blocks of this many bytes. */
export const BLOCK_BYTES = 512;

/** What follows an entry's header. */
export type TarType = 'file' | 'link' | 'symlink' | 'directory' | 'fifo' | 'left-out';

/** The flag of what is only named in the copy of a tree, with what is lost as its link name: one of those that POSIX leaves free. */
export const LEFT_OUT = 'O';

/** One entry of an archive. */
export interface TarEntry {
  name: BytePath;
  type: TarType;
  /** Bytes of content that follow. */
  size: number;
  link_name?: BytePath;
  /** Further records of the extended header. */
  records?: Record<string, string>;
  stat: Pick<Stats, 'mode' | 'uid' | 'gid' | 'mtimeMs'>;
  user: string;
  group: string;
}

const FLAGS: Record<TarType, string> = {
  file: '0',
  link: '1',
  symlink: '2',
  directory: '5',
  fifo: '6',
  'left-out': LEFT_OUT,
};
const EXTENDED = 'x';
const GNU_LONG_NAME = 'L';
const GNU_LONG_LINK = 'K';
const NAME_BYTES = 100;
/** The largest numbers that fit into the octal digits of the fields for ids and for size. */
const ID_MAX = 0o7777777;
const SIZE_MAX = 0o77777777777;

/**
 * The header of an entry in the POSIX format (ustar with extended headers), which every tar reads. Written here, because
 * names are bytes and sparse files need records of their own. A long name that is not UTF-8 takes GNU's form, since
 * extended headers are UTF-8.
 */
export function tarHeader(entry: TarEntry): Buffer {
  const { name, link_name = '', size, stat } = entry;
  const records: Record<string, string> = { ...entry.records };
  const parts: Buffer[] = [];
  const fitted = (value: BytePath, key: string, flag: string): BytePath => {
    if (value.length <= NAME_BYTES) return value;
    const bytes = Buffer.from(value, 'latin1');
    if (isUtf8(bytes)) records[key] = bytes.toString();
    else
      parts.push(block('././@LongLink', flag, bytes.length + 1, entry), padded(Buffer.concat([bytes, NUL])));
    return value.slice(0, NAME_BYTES);
  };
  const short_name = fitted(name, 'path', GNU_LONG_NAME);
  const short_link = fitted(link_name, 'linkpath', GNU_LONG_LINK);
  if (size > SIZE_MAX) records.size = String(size);
  if (stat.uid > ID_MAX) records.uid = String(stat.uid);
  if (stat.gid > ID_MAX) records.gid = String(stat.gid);
  if (Object.keys(records).length > 0) {
    const text = Buffer.from(Object.entries(records).map(record).join(''));
    parts.push(block('PaxHeader', EXTENDED, text.length, entry), padded(text));
  }
  parts.push(block(short_name, FLAGS[entry.type], size, entry, short_link));
  return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
}

/** Zeros up to the next block. */
export function padding(size: number): Buffer {
  return ZEROS.subarray(0, (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES);
}

/** The end of an archive. */
export const TAR_END = Buffer.alloc(2 * BLOCK_BYTES);

const ZEROS = Buffer.alloc(BLOCK_BYTES);
const NUL = Buffer.alloc(1);

function padded(data: Buffer): Buffer {
  return Buffer.concat([data, padding(data.length)]);
}

/** `<length> <key>=<value>\n`, where the length counts its own digits too. */
function record([key, value]: [string, string]): string {
  const rest = ` ${key}=${value}\n`;
  const length = Buffer.byteLength(rest);
  let digits = String(length).length;
  while (String(length + digits).length > digits) digits += 1;
  return `${length + digits}${rest}`;
}

function block(
  name: BytePath,
  flag: string,
  size: number,
  { stat, user, group }: TarEntry,
  link_name = '',
): Buffer {
  const data = Buffer.alloc(BLOCK_BYTES);
  const put = (text: string, at: number, length: number) => data.write(text, at, length, 'latin1');
  const octal = (value: number, digits: number) => Math.floor(value).toString(8).padStart(digits, '0');
  put(name, 0, NAME_BYTES);
  put(octal(stat.mode & MODE_BITS, 7), 100, 8);
  put(octal(Math.min(stat.uid, ID_MAX), 7), 108, 8);
  put(octal(Math.min(stat.gid, ID_MAX), 7), 116, 8);
  put(octal(Math.min(size, SIZE_MAX), 11), 124, 12);
  put(octal(Math.min(Math.max(stat.mtimeMs / 1_000, 0), SIZE_MAX), 11), 136, 12);
  put('        ', 148, 8);
  put(flag, 156, 1);
  put(link_name, 157, NAME_BYTES);
  put('ustar\0' + '00', 257, 8);
  put(user, 265, 31);
  put(group, 297, 31);
  let sum = 0;
  for (const byte of data) sum += byte;
  put(`${octal(sum, 6)}\0 `, 148, 8);
  return data;
}
