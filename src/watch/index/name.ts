import { isUtf8 } from 'node:buffer';

/**
 * File names are bytes. Inside the watch they are strings, in the internal form: a name that is valid UTF-8 is kept
 * as it is; in any other name each byte from 0x80 becomes the lone surrogate U+DC00 + byte, which no UTF-8 decodes to.
 */
const ESCAPE = 0xdc00;

/** The internal form of a name's bytes. */
export function nameOf(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString();
  return String.fromCharCode(...Array.from(bytes, (byte) => (byte < 0x80 ? byte : ESCAPE + byte)));
}

/** The bytes of a path in internal form. */
export function bytesOf(path: string): Buffer {
  if (path.isWellFormed()) return Buffer.from(path);
  const parts = path
    .split('/')
    .map((name) =>
      name.isWellFormed()
        ? Buffer.from(name)
        : Buffer.from(Array.from(name, (char) => char.charCodeAt(0) & 0xff)),
    );
  return Buffer.concat(parts.flatMap((part, i) => (i === 0 ? [part] : [Buffer.from('/'), part])));
}

/** A path in internal form as the file system calls take it: a string if it is UTF-8, its bytes otherwise. */
export function fsPath(path: string): string | Buffer {
  return path.isWellFormed() ? path : bytesOf(path);
}

/**
 * A path in internal form as an event shows it. In `text`, bytes that are not UTF-8 become U+FFFD; then `base64` holds
 * the path's bytes, otherwise it is null. Source: contract section 6.
 */
export function shownPath(path: string): { text: string; base64: string | null } {
  if (path.isWellFormed()) return { text: path, base64: null };
  const bytes = bytesOf(path);
  return { text: bytes.toString(), base64: bytes.toString('base64') };
}
