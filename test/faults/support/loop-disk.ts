import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Scene } from './scene.ts';

const PATH = `${process.env.PATH ?? ''}:/usr/sbin:/sbin`;
const env = { ...process.env, PATH };

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
    execFileSync('mkfs.ext4', ['-q', '-F', this.#image], { env });
    this.#mount();
    scene.undo(() => {
      spawnSync('fsfreeze', ['-u', this.folder], { env, stdio: 'ignore' });
      execFileSync('umount', ['--lazy', this.folder], { env });
    });
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  #mount(): void {
    execFileSync('mount', ['-o', 'loop', this.#image, this.folder], { env });
  }

  /** From now on every write fails; what was not synced is gone. */
  cutPower(): void {
    execFileSync('xfs_io', ['-x', '-c', 'shutdown', this.folder], { env });
  }

  /** Mounts it again as it is after the cut. Nobody may use it meanwhile. */
  again(): void {
    execFileSync('umount', ['--lazy', this.folder], { env });
    // Other tests' mount namespaces may hold the old disk, and would have its state be that of a new mount of its image.
    const copy = `${this.#image}.again`;
    execFileSync('cp', ['--sparse=always', this.#image, copy], { env });
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
    execFileSync('mount', ['-o', 'remount,ro', this.folder], { env });
  }

  /** Nothing that writes comes back, until `thaw`. */
  freeze(): void {
    execFileSync('fsfreeze', ['-f', this.folder], { env });
  }

  thaw(): void {
    execFileSync('fsfreeze', ['-u', this.folder], { env });
  }
}
