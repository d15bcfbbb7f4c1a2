import { constants, type Stats } from 'node:fs';
import { type BytePath, joined, systemPath } from './byte-path.ts';
import { lstat, O_PATH, type Opened, open } from './calls.ts';
import type { Directory } from './directory.ts';
import { isSystemError } from './file-error.ts';
import { type Inode, isSameInode, type OwnPlaces } from './own-places.ts';

const DIRECTORY = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * A way down from an open directory, and back. However deep it leads, it holds one descriptor, two while it moves: it
 * goes down by names, follows no link, and comes back by `..`, which is taken only if it is the directory that it came
 * from. What is above a directory is checked once, when it is entered.
 */
export class Trail implements AsyncDisposable {
  readonly #top: Directory;
  readonly #own: OwnPlaces;
  readonly #names: BytePath[] = [];
  /** Of each directory on the way, the current one last. */
  readonly #stats: Inode[] = [];
  /** Null at the top. */
  #here: Opened | null = null;
  #stat: Stats;
  #real: BytePath | null = null;
  #is_guarded: boolean | null = null;

  /** `top` stays the caller's. */
  constructor(top: Directory, own: OwnPlaces) {
    this.#top = top;
    this.#own = own;
    this.#stat = top.stat;
  }

  /** Levels below the top. */
  get depth(): number {
    return this.#names.length;
  }

  /** The name of the current directory; null at the top. */
  get name(): BytePath | null {
    return this.#names.at(-1) ?? null;
  }

  /** The current directory, when it was entered. */
  get stat(): Stats {
    return this.#stat;
  }

  /** Where the current directory was when it was entered, without links. */
  get real(): BytePath {
    this.#real ??= this.depth === 0 ? this.#top.real : joined(this.#top.real, this.#names.join('/'));
    return this.#real;
  }

  /** The path of a name in the current directory, or of itself, for system calls. */
  at(name: BytePath | null = null): string | Buffer {
    if (this.#here === null) return this.#top.at(name);
    const own = `/proc/self/fd/${this.#here.fd}`;
    return name === null ? own : systemPath(`${own}/${name}`);
  }

  /** What a name in the current directory is; null where there is none. A link is not followed. */
  async look(name: BytePath): Promise<Stats | null> {
    return lstat(this.at(name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
  }

  /** Enters a directory of the current one. Throws the system's error, or `forbidden`, and stays where it is. */
  async enter(name: BytePath): Promise<void> {
    await this.#enter(name, null);
  }

  /**
   * Goes back to the directory above. Where somebody has moved what is open, it goes down from the top again, as far as
   * the directories are those that it came through: `depth` then says how far.
   */
  async leave(): Promise<void> {
    if (this.depth <= 1) return this.#toTop();
    const expected = this.#stats.at(-2) as Inode;
    const opened = await this.#openedAbove(expected);
    if (opened === null) return this.#again();
    this.#names.pop();
    this.#stats.pop();
    await this.#take(opened.handle, opened.stat);
  }

  /** Goes to the directory of these names below the top. `onMissing` may make one that is not there. */
  async go(
    names: readonly BytePath[],
    onMissing: ((name: BytePath) => void) | null,
    signal?: AbortSignal,
  ): Promise<void> {
    const common = this.#commonWith(names);
    if (this.depth - common > common) await this.#toTop();
    while (this.depth > common) await this.leave();
    for (let i = this.depth; i < names.length; i++) {
      signal?.throwIfAborted();
      const name = names[i] as BytePath;
      await this.enter(name).catch(async (error) => {
        if (onMissing === null || !isSystemError(error, 'ENOENT')) throw error;
        onMissing(name);
        await this.enter(name);
      });
    }
  }

  /** Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#toTop();
  }

  /** False, and nothing has changed, where the name leads to another directory than expected. */
  async #enter(name: BytePath, expected: Inode | null): Promise<boolean> {
    const opened = await open(this.at(name), DIRECTORY);
    try {
      const stat = await opened.stat();
      if (expected && !isSameInode(stat, expected)) {
        await opened.close();
        return false;
      }
      this.#is_guarded ??= await this.#own.mayBeBelow(this.#top.real);
      await this.#own.checkEntered(this.#is_guarded ? joined(this.real, name) : null, stat);
      await this.#take(opened, stat);
      this.#names.push(name);
      this.#stats.push({ dev: stat.dev, ino: stat.ino });
      return true;
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  #commonWith(names: readonly BytePath[]): number {
    const most = Math.min(names.length, this.depth);
    for (let i = 0; i < most; i++) if (names[i] !== this.#names[i]) return i;
    return most;
  }

  async #take(opened: Opened | null, stat: Stats): Promise<void> {
    const before = this.#here;
    this.#here = opened;
    this.#stat = stat;
    this.#real = null;
    await before?.close();
  }

  async #toTop(): Promise<void> {
    this.#names.length = 0;
    this.#stats.length = 0;
    await this.#take(null, this.#top.stat);
  }

  async #openedAbove(expected: Inode): Promise<{ handle: Opened; stat: Stats } | null> {
    let handle: Opened;
    try {
      handle = await open(this.at('..'), DIRECTORY);
    } catch (error) {
      // Without the right to search the current directory, for example.
      if (isSystemError(error, 'ENOENT', 'EACCES', 'ESTALE')) return null;
      throw error;
    }
    const stat = await handle.stat();
    if (isSameInode(stat, expected)) return { handle, stat };
    await handle.close();
    return null;
  }

  async #again(): Promise<void> {
    const names = this.#names.slice(0, -1);
    const stats = this.#stats.slice(0, -1);
    await this.#toTop();
    for (const [i, name] of names.entries()) {
      try {
        if (!(await this.#enter(name, stats[i] as Inode))) return;
      } catch (error) {
        if (isSystemError(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) return;
        throw error;
      }
    }
  }
}
