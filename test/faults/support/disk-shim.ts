import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runSync } from '../../support/run-sync.ts';
import type { Scene } from './scene.ts';

const SOURCE = join(import.meta.dirname, 'disk-shim.c');

type Fault =
  | `any hang ${number}`
  | 'sync error'
  | 'sync nothing'
  | `sync slow ${number}`
  | 'write error'
  | 'write full'
  | 'write short'
  | 'write torn'
  | 'write flip';

/** Disk faults for the outbox of one state directory, switched while the daemon runs. */
export class DiskShim {
  readonly #control: string;
  /** The environment of the daemon that is to have these faults. */
  readonly env: Record<string, string>;

  constructor(scene: Scene, state_dir: string) {
    const library = scene.path('disk-shim.so');
    runSync('cc', '-shared', '-fPIC', '-O1', '-o', library, SOURCE, '-ldl');
    this.#control = scene.path('disk-fault');
    this.heal();
    this.env = { LD_PRELOAD: library, FAULT_CONTROL: this.#control, FAULT_FOLDER: state_dir };
  }

  fail(fault: Fault): void {
    writeFileSync(this.#control, `${fault}\n`);
  }

  heal(): void {
    writeFileSync(this.#control, '');
  }
}
