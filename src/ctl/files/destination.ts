import { once } from 'node:events';
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { type FileHandle, link, lstat, open, rename, rm, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { newTemporary } from '../../files/change/new-temporary.ts';
import { isSystemError } from '../../files/file-error.ts';
import { isPseudo } from '../../files/regular-file.ts';
import { EXIT, Failure, reason } from '../failure.ts';

/** Neither a pipe without a reader nor a terminal's line can hold the opening up, and no terminal becomes ours. */
const WRITE = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/** A local file that something is copied to. Every method throws a failure that names it. */
export interface Destination {
  /** Whether what was written can be written again, from the start. */
  can_restart: boolean;
  /** Makes it empty, before the first byte. */
  empty(): Promise<void>;
  write(chunk: Buffer, position: number): Promise<void>;
  /** Ends it after `size` bytes. The mode is that of a new file; what was there keeps its own. */
  finish(size: number, mode: number): Promise<void>;
  /** Of a new file that was not finished, nothing is left. */
  close(): Promise<void>;
}

/**
 * Opens what a path leads to, as cp(1) does: a file that is there is written into, so that it keeps its links, owner, mode
 * and access list; so are devices, and pipes that somebody reads from. A new file appears whole. Throws a failure naming
 * a directory, a socket, a pipe without a reader, or a link that leads nowhere. The signal ends a write that waits for a
 * pipe's reader.
 */
export function openDestination(path: string, signal: AbortSignal): Promise<Destination> {
  return naming(path, async () => {
    const found = await stat(path).catch(nullIfMissing);
    if (found === null) {
      if ((await lstat(path).catch(nullIfMissing)) !== null)
        throw new Failure(EXIT.failed, `${path} is a link that leads nowhere`);
      return newFile(path);
    }
    if (found.isDirectory()) throw new Failure(EXIT.failed, `${path} is a directory`);
    if (found.isSocket()) throw new Failure(EXIT.failed, `${path} is a socket`);
    if (found.isFIFO()) return pipe(path, signal);
    const handle = await open(path, WRITE);
    return kept(handle, async () => {
      const opened = await handle.stat();
      if (opened.isFIFO()) throw new Failure(EXIT.failed, `${path} is a pipe by now`);
      if (!opened.isFile()) return device(path, handle);
      return (await isPseudo(handle)) ? sequential(path, handle) : existingFile(path, handle);
    });
  });
}

/** Closes an open file unless the work with it succeeds. */
async function kept<Result>(handle: FileHandle, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** What can be written at any position. */
function positioned(path: string, handle: FileHandle): Pick<Destination, 'can_restart' | 'empty' | 'write'> {
  return {
    can_restart: true,
    empty: () => naming(path, () => handle.truncate(0)),
    write: (chunk, position) => naming(path, () => writeAll(handle, chunk, position)),
  };
}

function existingFile(path: string, handle: FileHandle): Destination {
  return {
    ...positioned(path, handle),
    finish: (size) =>
      naming(path, async () => {
        await handle.truncate(size);
        await handle.sync();
      }),
    close: () => handle.close(),
  };
}

async function newFile(path: string): Promise<Destination> {
  const { handle, give, discard } = (await unnamed(path)) ?? (await named(path));
  return {
    ...positioned(path, handle),
    finish: (size, mode) =>
      naming(path, async () => {
        await handle.truncate(size);
        await handle.chmod(mode);
        await handle.sync();
        await give();
      }),
    close: async () => {
      await handle.close();
      await discard();
    },
  };
}

/** A file that gets its name at its end, in one step. */
interface Unfinished {
  handle: FileHandle;
  give(): Promise<void>;
  discard(): Promise<void>;
}

/** Null where the file system, or this installation, has no files without a name. Not even SIGKILL leaves anything of one. */
async function unnamed(path: string): Promise<Unfinished | null> {
  const native = await import('../../base/linux/unnamed-file.ts').catch(() => null);
  if (!native) return null;
  const { openUnnamed, nameFile } = native;
  try {
    const handle = await openUnnamed(dirname(path));
    return { handle, give: async () => nameFile(handle, path), discard: async () => {} };
  } catch (error) {
    if (isSystemError(error, 'EOPNOTSUPP', 'ENOTSUP', 'EISDIR', 'EINVAL')) return null;
    throw error;
  }
}

async function named(path: string): Promise<Unfinished> {
  const aside = join(dirname(path), newTemporary().name);
  const handle = await open(aside, 'wx', 0o600);
  const give = async () => {
    // Unlike a rename, a second name takes nobody's place.
    await link(aside, path).catch(async (error) => {
      if (!isSystemError(error, 'EPERM', 'EOPNOTSUPP', 'ENOTSUP', 'EMLINK', 'ENOSYS')) throw error;
      await rename(aside, path);
    });
  };
  return { handle, give, discard: () => rm(aside, { force: true }) };
}

/** A device waits until it can take more, which what was opened without waiting does not. */
async function device(path: string, opened: FileHandle): Promise<Destination> {
  const handle = await open(`/proc/self/fd/${opened.fd}`, constants.O_WRONLY | constants.O_NOCTTY);
  return kept(handle, async () => {
    await opened.close();
    return sequential(path, handle);
  });
}

/** What takes bytes one after the other, such as a device or a file of the kernel: no length is set, and nothing is synced. */
function sequential(path: string, handle: FileHandle): Destination {
  return {
    can_restart: false,
    empty: async () => {},
    write: (chunk) => naming(path, () => writeAll(handle, chunk, null)),
    finish: async () => {},
    close: () => handle.close(),
  };
}

function pipe(path: string, signal: AbortSignal): Destination {
  let fd: number;
  try {
    fd = openSync(path, WRITE);
  } catch (error) {
    if (isSystemError(error, 'ENXIO'))
      throw new Failure(EXIT.failed, `${path} is a pipe that nobody reads from`);
    throw error;
  }
  if (!fstatSync(fd).isFIFO()) {
    closeSync(fd);
    throw new Failure(EXIT.failed, `${path} is no pipe any more`);
  }
  const stream = new Socket({ fd, readable: false, writable: true, signal }).on('error', () => {});
  return {
    can_restart: false,
    empty: async () => {},
    write: (chunk) =>
      naming(
        path,
        () =>
          new Promise((resolve, reject) =>
            stream.write(chunk, (error) => (error ? reject(error) : resolve())),
          ),
      ),
    finish: async () => {
      stream.end();
      await once(stream, 'close');
    },
    close: async () => {
      stream.destroy();
    },
  };
}

/** Writes all of `data`; the kernel may take it in parts. Null: where the last write ended. */
async function writeAll(file: FileHandle, data: Buffer, position: number | null): Promise<void> {
  for (let done = 0; done < data.length; ) {
    const at = position === null ? null : position + done;
    done += (await file.write(data, done, data.length - done, at)).bytesWritten;
  }
}

async function naming<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof Failure ? error : new Failure(EXIT.failed, `${path}: ${reason(error)}`);
  }
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
