import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import type { FileModified } from '../../../src/contract/events.ts';
import type { EngineOptions } from '../../../src/watch/engine.ts';
import { Engine } from '../../../src/watch/engine.ts';
import { MemoryStore } from './memory-store.ts';

const DEADLINE_MS = 60_000;

/** Waits until a condition holds; after a minute it is an error that shows `state`. */
export async function until(condition: () => boolean, state: () => unknown): Promise<void> {
  const end_ms = Date.now() + DEADLINE_MS;
  while (!condition()) {
    if (Date.now() > end_ms) throw new Error(`in vain: ${JSON.stringify(state(), null, 1)}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A real directory, `base/w`, that an engine watches, and what it told. */
export class WatchedTree {
  readonly base = mkdtempSync(join(tmpdir(), 'watched-'));
  readonly top = join(this.base, 'w');
  readonly store = new MemoryStore();
  readonly #options: Partial<EngineOptions>;
  engine!: Engine;
  #marks = 0;

  constructor(options: Partial<EngineOptions> = {}) {
    this.#options = options;
  }

  /** Makes files below the watched directory: a name that ends in a slash is a directory. */
  make(...names: string[]): void {
    for (const name of names) {
      const path = join(this.top, name);
      mkdirSync(name.endsWith('/') ? path : dirname(path), { recursive: true });
      if (!name.endsWith('/')) writeFileSync(path, 'content');
    }
  }

  at(name: string): string {
    return join(this.top, name);
  }

  append(name: string): void {
    appendFileSync(this.at(name), 'more');
  }

  async start(): Promise<void> {
    const quiet = { debug: () => {}, info: () => {}, warn: () => {} };
    this.engine = new Engine({
      watch_dir: this.top,
      ignore: [],
      own_paths: [],
      clock: systemClock,
      log: quiet,
      store: this.store,
      ...this.#options,
    });
    await this.engine.start();
  }

  async restart(meanwhile: () => void): Promise<void> {
    await this.engine.stop();
    meanwhile();
    await this.start();
  }

  payloads(): FileModified[] {
    return this.store.events.map(({ payload }) => payload).filter(({ path }) => !path.includes('/.mark-'));
  }

  /** What was told so far, as `operation path` or `rename old_path -> path`, relative to the watched directory. */
  told(): string[] {
    const relative = (path = '') => path.slice(this.top.length + 1);
    return this.payloads().map(({ event_type, path, old_path }) =>
      [event_type, ...(old_path === undefined ? [] : [relative(old_path), '->']), relative(path)].join(' '),
    );
  }

  /** Waits until everything that happened before is told, and returns it. */
  async settled(): Promise<string[]> {
    const mark = this.at(`.mark-${++this.#marks}`);
    const seen = () => this.store.events.some(({ payload }) => payload.path === mark);
    writeFileSync(mark, '');
    await until(
      () => seen() && this.engine.status().queued === 0,
      () => [this.told(), this.engine.status()],
    );
    return this.told();
  }

  async told_since(change: () => unknown): Promise<string[]> {
    const before = (await this.settled()).length;
    await change();
    return (await this.settled()).slice(before);
  }

  async close(): Promise<void> {
    await this.engine?.stop();
    rmSync(this.base, { recursive: true, force: true });
  }
}
