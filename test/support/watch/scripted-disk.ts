import type { Disk } from '../../../src/watch/disk.ts';
import type { FileStat, ProbeResult } from '../../../src/watch/index/file-stat.ts';

/** A file system in memory whose entries a test changes between two looks; a path without an entry is missing. */
export class ScriptedDisk implements Disk {
  readonly entries = new Map<string, FileStat | 'hidden'>();
  /** Called before each look at a path. */
  onProbe: (path: string) => void = () => {};
  #last_ino = 0;

  put(path: string, mode: number, changes: Partial<FileStat> = {}): FileStat {
    const ino = ++this.#last_ino;
    const stat = {
      dev: 1,
      ino,
      birth: 1,
      mode,
      uid: 0,
      gid: 0,
      size: 0,
      mtime: 1,
      ctime: 1,
      links: 1,
      ...changes,
    };
    this.entries.set(path, stat);
    return stat;
  }

  probe(path: string): ProbeResult {
    this.onProbe(path);
    return this.entries.get(path) ?? 'missing';
  }

  list(path: string): string[] {
    const start = `${path}/`;
    const below = [...this.entries.keys()].filter((other) => other.startsWith(start));
    return below.map((other) => other.slice(start.length)).filter((name) => !name.includes('/'));
  }

  fileSystem(): null {
    return null;
  }
}
