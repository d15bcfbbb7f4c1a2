import { posix } from 'node:path';
import type { Disk } from '../../../src/watch/disk.ts';
import type { FileStat, ProbeResult } from '../../../src/watch/index/file-stat.ts';
import type { DirectoryWatches, OnSignal, WatchFailure } from '../../../src/watch/signals/directory-watch.ts';

const DIRECTORY = 0o040755;
const FILE = 0o100644;

interface Inode extends FileStat {
  entries: Map<string, Inode> | null;
  watches: Set<OnSignal>;
}

/** A file system in memory with the signals of inotify as libuv hands them on: kept until `deliver`. */
export class ModelDisk implements Disk, DirectoryWatches {
  #signals: (() => void)[] = [];
  #last_ino = 0;
  #now = 1e9;
  readonly #root = this.#inode(DIRECTORY);
  /** Directories that may be watched. */
  watches_max = Number.POSITIVE_INFINITY;
  #watches = 0;

  probe(path: string): ProbeResult {
    const node = this.#at(path);
    if (!node) return 'missing';
    const { entries: _, watches: __, ...stat } = node;
    return stat;
  }

  list(path: string): string[] | null {
    const entries = this.#at(path)?.entries;
    return entries ? [...entries.keys()] : null;
  }

  fileSystem(): null {
    return null;
  }

  watch(path: string, onSignal: OnSignal): (() => void) | WatchFailure {
    const node = this.#at(path);
    if (!node?.entries) return 'gone';
    if (this.#watches >= this.watches_max) return 'limit';
    this.#watches++;
    node.watches.add(onSignal);
    return () => {
      if (node.watches.delete(onSignal)) this.#watches--;
    };
  }

  async close(): Promise<void> {}

  /** Hands over the signals that are kept. */
  deliver(): void {
    for (const signal of this.#signals.splice(0)) signal();
  }

  /** Loses the signals that are kept, as a kernel's queue that overflows. */
  lose(): void {
    this.#signals = [];
  }

  /** Every path below a directory. */
  paths(top: string, at = this.#at(top), prefix = top): string[] {
    return [...(at?.entries ?? [])].flatMap(([name, node]) => {
      const path = `${prefix}/${name}`;
      return [path, ...this.paths(top, node, path)];
    });
  }

  /** What stands for a file's content; null for what has none. */
  content(path: string): string | null {
    const node = this.#at(path);
    return node && !node.entries ? `${node.ino} ${node.size} ${node.mtime}` : null;
  }

  mkdir(path: string): void {
    this.#add(path, DIRECTORY);
  }

  create(path: string): void {
    this.#add(path, FILE);
  }

  write(path: string): void {
    const node = this.#at(path);
    if (!node || node.entries) return;
    node.size++;
    node.mtime = node.ctime = this.#tick();
    this.#signal(path, 'change');
  }

  chmod(path: string): void {
    const node = this.#at(path);
    if (!node) return;
    node.mode ^= 0o022;
    node.ctime = this.#tick();
    this.#signal(path, 'change');
  }

  link(path: string, other: string): void {
    const node = this.#at(path);
    const dir = this.#at(posix.dirname(other));
    if (!node || node.entries || !dir?.entries || this.#at(other)) return;
    node.links++;
    dir.entries.set(posix.basename(other), node);
    this.#signal(other, 'rename');
  }

  remove(path: string): void {
    const node = this.#at(path);
    const dir = this.#at(posix.dirname(path));
    if (!node || !dir?.entries) return;
    for (const name of [...(node.entries?.keys() ?? [])]) this.remove(`${path}/${name}`);
    dir.entries.delete(posix.basename(path));
    node.links--;
    this.#signal(path, 'rename', dir);
    this.#own(node, path);
  }

  rename(path: string, other: string): void {
    const node = this.#at(path);
    const over = this.#at(other);
    const [from, to] = [this.#at(posix.dirname(path)), this.#at(posix.dirname(other))];
    if (!node || !from?.entries || !to?.entries || node === over || `${other}/`.startsWith(`${path}/`))
      return;
    if (over && (Boolean(over.entries) !== Boolean(node.entries) || over.entries?.size)) return;
    from.entries.delete(posix.basename(path));
    to.entries.set(posix.basename(other), node);
    if (over) over.links--;
    node.ctime = this.#tick();
    this.#signal(path, 'rename', from);
    this.#signal(other, 'rename', to);
    if (over) this.#own(over, other);
    this.#own(node, path);
  }

  exchange(path: string, other: string): void {
    const [a, b] = [this.#at(path), this.#at(other)];
    const [from, to] = [this.#at(posix.dirname(path)), this.#at(posix.dirname(other))];
    if (!a || !b || a === b || !from?.entries || !to?.entries) return;
    if (`${other}/`.startsWith(`${path}/`) || `${path}/`.startsWith(`${other}/`)) return;
    from.entries.set(posix.basename(path), b);
    to.entries.set(posix.basename(other), a);
    for (const name of [path, other, other, path]) this.#signal(name, 'rename');
  }

  #add(path: string, mode: number): void {
    const dir = this.#at(posix.dirname(path));
    if (!dir?.entries || this.#at(path)) return;
    dir.entries.set(posix.basename(path), this.#inode(mode));
    this.#signal(path, 'rename');
  }

  #at(path: string): Inode | undefined {
    let node: Inode | undefined = this.#root;
    for (const name of path.split('/').filter(Boolean)) node = node?.entries?.get(name);
    return node;
  }

  #inode(mode: number): Inode {
    const is_directory = mode === DIRECTORY;
    const birth = this.#tick();
    return {
      dev: 1,
      ino: ++this.#last_ino,
      birth,
      mode,
      uid: 0,
      gid: 0,
      size: 0,
      mtime: birth,
      ctime: birth,
      links: 1,
      entries: is_directory ? new Map() : null,
      watches: new Set(),
    };
  }

  #tick(): number {
    this.#now += 1e6;
    return this.#now;
  }

  #signal(path: string, signal: 'rename' | 'change', dir = this.#at(posix.dirname(path))): void {
    this.#tell(dir, signal, posix.basename(path), false);
  }

  /** A watched directory that goes or moves signals its own name. */
  #own(node: Inode, path: string): void {
    if (node.entries) this.#tell(node, 'rename', posix.basename(path), true);
  }

  #tell(node: Inode | undefined, signal: 'rename' | 'change', name: string, own: boolean): void {
    const watches = [...(node?.watches ?? [])];
    this.#signals.push(() => {
      for (const onSignal of watches) if (node?.watches.has(onSignal)) onSignal(signal, name, own);
    });
  }
}
