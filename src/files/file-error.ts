import { ApiError, type ErrorCode, invalidField } from '../contract/errors.ts';
import { type BytePath, shownBytes } from './byte-path.ts';

/** What the kernel's refusals mean to a client. Source: contract section 4, "Files". */
const CODES: Record<string, ErrorCode> = {
  ENOENT: 'not_found',
  ENOTDIR: 'not_a_directory',
  EISDIR: 'is_a_directory',
  EEXIST: 'already_exists',
  ENOTEMPTY: 'directory_not_empty',
  EACCES: 'permission_denied',
  EPERM: 'permission_denied',
  EROFS: 'permission_denied',
  ENXIO: 'not_a_file',
  ENODEV: 'not_a_file',
  ENOSPC: 'no_space',
  EDQUOT: 'no_space',
  EFBIG: 'no_space',
  EMFILE: 'too_many_requests',
  ENFILE: 'too_many_requests',
};

const MESSAGES: Partial<Record<string, string>> = {
  EROFS: 'The file system is read-only.',
  EDQUOT: "The account's disk quota is used up.",
  EFBIG: 'The file is larger than the file system allows.',
  EMFILE: 'Too many files are open.',
  ENFILE: 'Too many files are open.',
};

/**
 * The catalogue's error for a failure of the file system, told of the request's path: its details have a `path` or a
 * `field`. A failure that the request has no part in, such as EIO, is returned unchanged.
 */
export function fileError(error: unknown, path: BytePath, field = 'path'): Error {
  if (error instanceof ApiError) return namingPath(error, path);
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'ELOOP') return invalidField(field, 'leads through too many links');
  if (code === 'ENAMETOOLONG') return invalidField(field, 'is too long');
  if (code === 'EINVAL') return invalidField(field, 'is not accepted by the file system');
  if (code === 'EBUSY') return conflictAt(path, 'is in use as a mount point');
  const known = CODES[code];
  if (known === undefined) return error as Error;
  return namingPath(new ApiError(known, MESSAGES[code]), path);
}

/** An error that names nothing yet names the path of the request. */
function namingPath(error: ApiError, path: BytePath): ApiError {
  const { code } = error;
  const details = (error.details ?? {}) as Record<string, unknown>;
  if (details.path !== undefined || details.field !== undefined) return error;
  const { text } = shownBytes(path);
  const message = code === 'not_found' ? `No such file or directory: ${text}` : error.message;
  return new ApiError(code, message, { path: text, ...details });
}

/** A `conflict` about one path. */
export function conflictAt(path: BytePath, problem: string): ApiError {
  const { text } = shownBytes(path);
  return new ApiError('conflict', `${text} ${problem}.`, { path: text });
}

/** A file that became shorter while it was read. */
export class FileShrunk extends ApiError {
  constructor() {
    super('conflict', 'A file has shrunk while it was read.');
  }
}

/** Whether an error is one of these of the kernel. */
export function isSystemError(error: unknown, ...codes: string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException | undefined)?.code ?? '');
}

/** Maps errors to the catalogue, naming `path`; see `fileError`. */
export async function withPath<Result>(
  path: BytePath,
  work: () => Promise<Result>,
  field?: string,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw fileError(error, path, field);
  }
}
