import { closeSync, constants, openSync, readFileSync, type Stats } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { ApiError } from '../contract/errors.ts';
import { type BytePath, joined, systemPath } from './byte-path.ts';
import { lstat, O_PATH, type Opened, open, readlink } from './calls.ts';
import type { OwnPlaces } from './own-places.ts';

const DIRECTORY = O_PATH | constants.O_DIRECTORY;

/**
 * An open directory. What is done to a name in it goes to this very directory, even if another one has meanwhile taken
 * its place: the paths of system calls lead through its descriptor.
 */
export class Directory {
  /** Where it was when it was opened, without links. */
  readonly real: BytePath;
  readonly stat: Stats;
  readonly #handle: Opened;

  private constructor(handle: Opened, real: BytePath, stat: Stats) {
    this.#handle = handle;
    this.real = real;
    this.stat = stat;
  }

  /** Opens a directory; links are followed unless `no_follow`. Throws the system's error, or `forbidden`. */
  static async open(path: string | Buffer, own: OwnPlaces, no_follow = false): Promise<Directory> {
    const handle = await open(path, no_follow ? DIRECTORY | constants.O_NOFOLLOW : DIRECTORY);
    try {
      const stat = await handle.stat();
      const real = await checkedPathOf(handle, stat, own);
      return new Directory(handle, real, stat);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Opens a directory in it; no link is followed. Throws the system's error, or `forbidden`. */
  async enter(name: BytePath, own: OwnPlaces): Promise<Directory> {
    const handle = await open(this.at(name), DIRECTORY | constants.O_NOFOLLOW);
    try {
      const stat = await handle.stat();
      const real = joined(this.real, name);
      await own.checkEntered(real, stat);
      return new Directory(handle, real, stat);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** The path of a name in it, or of itself, for system calls. A final `..` or an absolute path is never given. */
  at(name: BytePath | null = null): string | Buffer {
    const own = `/proc/self/fd/${this.#handle.fd}`;
    return name === null ? own : systemPath(`${own}/${name}`);
  }

  /** What a name in it is; null where there is none. A link is not followed. */
  async look(name: BytePath): Promise<Stats | null> {
    return lstat(this.at(name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
  }

  /** Syncs the names in it, so that they survive a power cut. */
  async sync(): Promise<void> {
    const handle = await openFile(this.at(), constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await this.#handle.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Where an open file really is. Throws `forbidden` where that is out of reach. */
export async function checkedPathOf(
  { fd }: Pick<Opened, 'fd'>,
  stat: Stats,
  own: OwnPlaces,
): Promise<BytePath> {
  checkOwnMount(fd);
  const real = await readlink(`/proc/self/fd/${fd}`);
  await own.check(real, stat);
  return real;
}

/** The mount of this process's root directory, which nobody can take away. */
let root_mount: string | null = null;

/**
 * Throws `forbidden` if what is open lies in a mount namespace other than this process's, as `/proc/<pid>/root` leads to:
 * its path there says nothing about where it is here. Source: contract section 4, "Files".
 */
function checkOwnMount(fd: number): void {
  const mount = mountOf(fd);
  if (mount === rootMount() || ownMounts().includes(mount)) return;
  throw new ApiError('forbidden', "This lies in another mount namespace, which file operations don't reach.");
}

function rootMount(): string {
  if (root_mount === null) {
    const fd = openSync('/', O_PATH | constants.O_DIRECTORY);
    root_mount = mountOf(fd);
    closeSync(fd);
  }
  return root_mount;
}

/** Numbers are given again once a mount has gone, so that they cannot be kept. */
function ownMounts(): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'latin1').split('\n');
  return lines.map((line) => line.slice(0, line.indexOf(' ')));
}

function mountOf(fd: number): string {
  const [, id = ''] = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1')) ?? [];
  return id;
}
