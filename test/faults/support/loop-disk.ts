import { closeSync, mkdirSync, openSync, rmSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { runSync, succeeds } from '../../support/run-sync.ts';
import type { Scene } from './scene.ts';

/** A file system of its own, ext4 on a file, that can be filled, hung and cut from its power. */
export class LoopDisk {
  #image: string;
  readonly folder: string;

  constructor(scene: Scene, megabytes = 64) {
    this.folder = scene.path('disk');
    this.#image = scene.path('disk.img');
    mkdirSync(this.folder);
    writeFileSync(this.#image, '');
    truncateSync(this.#image, megabytes * 1024 * 1024);
    runSync('mkfs.ext4', '-q', '-F', this.#image);
    this.#mount();
    scene.undo(() => {
      succeeds('fsfreeze', '-u', this.folder);
      runSync('umount', '--lazy', this.folder);
    });
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  #mount(): void {
    runSync('mount', '-o', 'loop', this.#image, this.folder);
  }

  /** From now on every write fails; what was not synced is gone. */
  cutPower(): void {
    runSync('xfs_io', '-x', '-c', 'shutdown', this.folder);
  }

  /** Mounts it again as it is after the cut. Nobody may use it meanwhile. */
  again(): void {
    runSync('umount', '--lazy', this.folder);
    // Other tests' mount namespaces may hold the old disk, and would have its state be that of a new mount of its image.
    const copy = `${this.#image}.again`;
    runSync('cp', '--sparse=always', this.#image, copy);
    this.#image = copy;
    this.#mount();
  }

  fill(): void {
    for (const [name, size] of [
      ['ballast', 64 * 1024],
      ['ballast-2', 512],
    ] as const) {
      const file = openSync(this.path(name), 'w');
      const block = Buffer.alloc(size, 1);
      try {
        for (;;) writeSync(file, block);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      } finally {
        closeSync(file);
      }
    }
  }

  empty(): void {
    for (const name of ['ballast', 'ballast-2']) rmSync(this.path(name), { force: true });
  }

  makeReadOnly(): void {
    runSync('mount', '-o', 'remount,ro', this.folder);
  }

  /** Nothing that writes comes back, until `thaw`. */
  freeze(): void {
    runSync('fsfreeze', '-f', this.folder);
  }

  thaw(): void {
    runSync('fsfreeze', '-u', this.folder);
  }
}
