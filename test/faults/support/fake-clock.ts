import { renameSync, writeFileSync } from 'node:fs';
import type { Scene } from './scene.ts';
import { faketimeLibrary } from './tools.ts';

/** A wall clock of the case's own for a program; its monotonic clock stays true. */
export class FakeClock {
  readonly #file: string;
  readonly env: Record<string, string>;

  constructor(scene: Scene, offset = '+0') {
    this.#file = scene.path('clock');
    this.step(offset);
    this.env = {
      LD_PRELOAD: faketimeLibrary(),
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  /** Puts the clock to an offset from the true time, such as `+2d` or `-6y`. */
  step(offset: string): void {
    writeFileSync(`${this.#file}.new`, `${offset}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}
