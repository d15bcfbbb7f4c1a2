import type { Stats } from 'node:fs';
import { readdir, realpath } from 'node:fs/promises';
import { systemClock } from '../base/clock.ts';
import { ApiError } from '../contract/errors.ts';
import { type BytePath, below, bytePath, joined, systemPath } from './byte-path.ts';
import { lstat, stat } from './calls.ts';

/** A file as the kernel knows it, whatever its name. */
export type Inode = Pick<Stats, 'dev' | 'ino'>;

/** Where the places are. */
interface Known {
  paths: BytePath[];
  identities: Inode[];
}

/** The table of processes. */
const PROCESSES = '/proc';
/** How long their whereabouts are reused, in ms. */
const KNOWN_MS = 1_000;

/**
 * The places that file operations never reach: the daemon's state directory, its control token and socket, and its
 * processes' own entries in /proc, which show its memory. What is opened is judged by where it really is, not by the
 * path that led there. Source: contract section 4, "Files".
 */
export class OwnPlaces {
  readonly #paths: readonly string[];
  readonly #daemon_pid: number;
  #known: Promise<Known> | null = null;
  #known_ms = 0;

  /** Absolute paths of the state directory and of single files. `daemon_pid`: 0 for none. */
  constructor(paths: readonly string[], daemon_pid = 0) {
    this.#paths = paths;
    this.#daemon_pid = daemon_pid;
  }

  /** Throws `forbidden` if this is one of the places, or inside one. `real` is without links. */
  async check(real: BytePath, found: Inode | null): Promise<void> {
    const { paths, identities } = await this.#look();
    for (const own of paths) if (below(own, real) !== null) throw forbidden();
    if (await this.#isOwnProcess(real)) throw forbidden();
    if (identities.length === 0) return;
    // The same directory can be mounted in several places.
    const above = await Promise.all(directoriesAbove(real).map(identityOf));
    const places = [found, ...above].filter((place) => place !== null);
    if (places.some((place) => identities.some((own) => isSameInode(own, place)))) throw forbidden();
  }

  /** Like `check`, by the path alone: for a name in a directory that was checked itself. */
  async checkName(real: BytePath): Promise<void> {
    const { paths } = await this.#look();
    for (const own of paths) if (below(own, real) !== null) throw forbidden();
  }

  /**
   * Throws `forbidden` if a directory is one of the places that was entered by its name from one that was checked, so that
   * what is above it need not be. `real` may be null if `mayBeBelow` says that no place is near.
   */
  async checkEntered(real: BytePath | null, found: Inode): Promise<void> {
    const { identities } = await this.#look();
    if (identities.some((own) => isSameInode(own, found))) throw forbidden();
    if (real === null) return;
    await this.checkName(real);
    if (await this.#isOwnProcess(real)) throw forbidden();
  }

  /** Whether one of the places may be below a directory. */
  async mayBeBelow(real: BytePath): Promise<boolean> {
    const { paths } = await this.#look();
    const is_near_processes = below(real, PROCESSES) !== null || below(PROCESSES, real) !== null;
    return is_near_processes || paths.some((own) => below(real, own) !== null);
  }

  /** Throws `forbidden` for another name of a file in the state directory. */
  async checkNames(found: Stats): Promise<void> {
    if (found.nlink < 2) return;
    for (const path of this.#paths) {
      const folder = await identityOf(bytePath(path));
      if (folder?.dev !== found.dev) continue;
      const names = await readdir(path).catch(() => []);
      const files = await Promise.all(names.map((name) => identityOf(bytePath(`${path}/${name}`))));
      if ([folder, ...files].some((each) => each && isSameInode(each, found))) throw forbidden();
    }
  }

  /** Throws `forbidden` if a directory is one of the places, is inside one, or holds one. */
  async checkWhole(real: BytePath, found: Inode): Promise<void> {
    await this.check(real, found);
    const { paths } = await this.#look();
    for (const own of paths) if (below(real, own) !== null) throw forbidden();
  }

  /** Whether a name in a directory is one of the places; lists and copies leave it out. */
  async hides(directory: BytePath): Promise<(name: BytePath) => boolean> {
    const { paths } = await this.#look();
    const names = paths.flatMap((own) => {
      const name = below(directory, own);
      return name === null || name.includes('/') ? [] : [name];
    });
    return (name) => names.includes(name);
  }

  /** Whether a path is about this process or the daemon in a process table: threads have entries that no list shows. */
  async #isOwnProcess(real: BytePath): Promise<boolean> {
    const [, table, id = ''] = real.split('/');
    if (`/${table}` !== PROCESSES || !/^\d+$/.test(id)) return false;
    const owners = this.#daemon_pid === 0 ? ['self'] : ['self', String(this.#daemon_pid)];
    const found = owners.map((owner) =>
      lstat(joined(`/proc/${owner}/task`, id)).then(
        () => true,
        () => false,
      ),
    );
    return (await Promise.all(found)).includes(true);
  }

  /** The places without links, as far as this process can see them. */
  #look(): Promise<Known> {
    const now_ms = systemClock.monotonicMs();
    if (this.#known === null || now_ms - this.#known_ms > KNOWN_MS) {
      this.#known_ms = now_ms;
      this.#known = knownOf(this.#paths);
    }
    return this.#known;
  }
}

async function knownOf(given: readonly string[]): Promise<Known> {
  const paths = await Promise.all(given.map(async (path) => realpath(path).catch(() => path)));
  const found = await Promise.all(given.map((path) => identityOf(bytePath(path))));
  return { paths: paths.map(bytePath), identities: found.filter((each) => each !== null) };
}

async function identityOf(path: BytePath): Promise<Inode | null> {
  return stat(systemPath(path)).catch(() => null);
}

/** Whether these are one file. */
export function isSameInode(one: Inode, other: Inode): boolean {
  return one.ino === other.ino && one.dev === other.dev;
}

function directoriesAbove(real: BytePath): BytePath[] {
  const names = real.split('/').slice(1, -1);
  return names.map((_, i) => `/${names.slice(0, i + 1).join('/')}`);
}

function forbidden(): ApiError {
  return new ApiError(
    'forbidden',
    "This belongs to the daemon itself, which its file operations don't reach.",
  );
}
