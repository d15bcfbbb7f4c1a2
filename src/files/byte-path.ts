import { isUtf8 } from 'node:buffer';
import { invalidField } from '../contract/errors.ts';

/**
 * Paths are bytes. In this folder they are strings in which each character is one byte (`latin1`): they compare as the
 * bytes do, and every name fits, whether it is UTF-8 or not.
 */
export type BytePath = string;

/** PATH_MAX of Linux, without the final NUL. */
const PATH_MAX_BYTES = 4_095;
/** NAME_MAX of Linux. */
const NAME_MAX_BYTES = 255;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: what is not ASCII needs its bytes.
const ASCII = /^[\x00-\x7f]*$/;

/** A path as a request gives it: as text, or as the base64 of bytes that are not UTF-8. */
export interface GivenPath {
  path?: string | undefined;
  path_base64?: string | undefined;
}

/** The path of a request. Throws `invalid_request` with the field at fault; `field` is the name of the text's. */
export function parsePath({ path, path_base64 }: GivenPath, field = 'path'): BytePath {
  const base64_field = `${field}_base64`;
  if (path_base64 === undefined) {
    if (path === undefined) throw invalidField(field, 'is required');
    if (!path.isWellFormed()) throw invalidField(field, 'must be UTF-8');
    return checkPath(bytePath(path), field);
  }
  if (path !== undefined) throw invalidField(base64_field, `is not accepted together with ${field}`);
  if (!BASE64.test(path_base64)) throw invalidField(base64_field, 'must be base64');
  return checkPath(Buffer.from(path_base64, 'base64').toString('latin1'), base64_field);
}

/** The path with the bytes of a text. */
export function bytePath(text: string): BytePath {
  return ASCII.test(text) ? text : Buffer.from(text).toString('latin1');
}

/** A path as the system calls take it. */
export function systemPath(path: BytePath): string | Buffer {
  return ASCII.test(path) ? path : Buffer.from(path, 'latin1');
}

/** A path as answers show it: in `text`, what is not UTF-8 becomes U+FFFD, and `base64` then holds the bytes. */
export function shownBytes(path: BytePath): { text: string; base64: string | null } {
  if (ASCII.test(path)) return { text: path, base64: null };
  const bytes = Buffer.from(path, 'latin1');
  return { text: bytes.toString(), base64: isUtf8(bytes) ? null : bytes.toString('base64') };
}

/** The fields `path` and, where it is not UTF-8, `path_base64`. */
export function pathFields(path: BytePath): { path: string; path_base64?: string } {
  const { text, base64 } = shownBytes(path);
  return base64 === null ? { path: text } : { path: text, path_base64: base64 };
}

/** Two parts of a path as one. */
export function joined(directory: BytePath, name: BytePath): BytePath {
  return directory.endsWith('/') ? directory + name : `${directory}/${name}`;
}

/** The path relative to a directory above it, `''` for the directory itself; null if it is not below it. */
export function below(directory: BytePath, path: BytePath): BytePath | null {
  if (path === directory) return '';
  const prefix = directory.endsWith('/') ? directory : `${directory}/`;
  return path.startsWith(prefix) ? path.slice(prefix.length) : null;
}

function checkPath(path: BytePath, field: string): BytePath {
  if (path === '') throw invalidField(field, 'must not be empty');
  if (path.includes('\0')) throw invalidField(field, 'must not contain NUL');
  if (!path.startsWith('/')) throw invalidField(field, 'must be absolute');
  if (path.length > PATH_MAX_BYTES) throw invalidField(field, `must be at most ${PATH_MAX_BYTES} bytes`);
  if (path.split('/').some((name) => name.length > NAME_MAX_BYTES)) {
    throw invalidField(field, `must not contain a name of more than ${NAME_MAX_BYTES} bytes`);
  }
  return path;
}
