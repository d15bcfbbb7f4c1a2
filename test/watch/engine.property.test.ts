import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { Engine } from '../../src/watch/engine.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { MemoryStore } from '../support/watch/memory-store.ts';
import { Mirror } from '../support/watch/mirror.ts';
import { ModelDisk } from '../support/watch/model-disk.ts';

const TOP = '/w';
const OUTSIDE = '/o';

const name = fc.constantFrom('a', 'b', 'c');
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => `${TOP}/${names.join('/')}`);
const anywhere = fc.oneof(
  { weight: 5, arbitrary: path },
  { weight: 1, arbitrary: name.map((n) => `${OUTSIDE}/${n}`) },
);

type Operation = (disk: ModelDisk) => void;

const operation: fc.Arbitrary<{ text: string; run: Operation }> = fc.oneof(
  path.map((p) => ({ text: `mkdir ${p}`, run: (disk: ModelDisk) => disk.mkdir(p) })),
  path.map((p) => ({ text: `create ${p}`, run: (disk: ModelDisk) => disk.create(p) })),
  path.map((p) => ({ text: `write ${p}`, run: (disk: ModelDisk) => disk.write(p) })),
  path.map((p) => ({ text: `chmod ${p}`, run: (disk: ModelDisk) => disk.chmod(p) })),
  path.map((p) => ({ text: `remove ${p}`, run: (disk: ModelDisk) => disk.remove(p) })),
  fc
    .tuple(path, path)
    .map(([p, q]) => ({ text: `link ${p} ${q}`, run: (disk: ModelDisk) => disk.link(p, q) })),
  fc
    .tuple(anywhere, anywhere)
    .map(([p, q]) => ({ text: `rename ${p} ${q}`, run: (disk: ModelDisk) => disk.rename(p, q) })),
  fc
    .tuple(path, path)
    .map(([p, q]) => ({ text: `exchange ${p} ${q}`, run: (d: ModelDisk) => d.exchange(p, q) })),
);

type Step = { text: string; run: Operation } | { wait_ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: operation },
  {
    weight: 1,
    arbitrary: fc.constantFrom(1, 5, 16, 30, 70).map((wait_ms) => ({ text: `wait ${wait_ms}`, wait_ms })),
  },
);

const quiet = { debug: () => {}, info: () => {}, warn: () => {} };

class Trial {
  readonly disk = new ModelDisk();
  readonly store = new MemoryStore();
  readonly clock = new ManualClock();
  engine = this.#engine();
  mirror = new Mirror([], () => null);
  readonly told: string[] = [];

  #engine(): Engine {
    const { disk, store, clock } = this;
    return new Engine({
      watch_dir: TOP,
      ignore: [],
      own_paths: [],
      clock,
      log: quiet,
      store,
      disk,
      watches: disk,
    });
  }

  async begin(before: Step[]): Promise<void> {
    this.disk.mkdir(TOP);
    this.disk.mkdir(OUTSIDE);
    for (const step of before) if ('run' in step) step.run(this.disk);
    await this.start();
    this.mirror = new Mirror(this.disk.paths(TOP), (path) => this.disk.content(path));
    this.store.onCommit = ({ events }) => {
      for (const { payload } of events) {
        this.told.push(`${payload.event_type} ${payload.old_path ?? ''} ${payload.path}`);
        this.mirror.apply(payload);
      }
    };
  }

  async start(): Promise<void> {
    let started = false;
    void this.engine.start().then(() => {
      started = true;
    });
    while (!started) await this.clock.advance(20);
  }

  async restart(): Promise<void> {
    this.engine = this.#engine();
    await this.start();
  }

  async run(steps: Step[]): Promise<void> {
    for (const step of steps) {
      if ('run' in step) step.run(this.disk);
      else await this.#pass(step.wait_ms);
    }
  }

  async #pass(ms: number): Promise<void> {
    this.disk.deliver();
    await this.clock.advance(ms);
  }

  async settle(): Promise<void> {
    for (let i = 0; i < 60; i++) await this.#pass(20);
  }

  async reconcile(): Promise<void> {
    let done = false;
    void this.engine.reconcile('test').then(() => {
      done = true;
    });
    while (!done) await this.clock.advance(20);
  }

  check(): void {
    const disk = this.disk.paths(TOP).sort();
    expect(this.mirror.entries(), this.told.join('\n')).toEqual(
      disk.map((path) => [path, this.disk.content(path)]),
    );
    expect(this.engine.status().index_size).toBe(disk.length);
  }
}

const steps = fc.array(step, { maxLength: 40 });
const runs = { numRuns: Number(process.env.PROPERTY_RUNS ?? 60) };

vi.setConfig({ testTimeout: 60_000 });

describe('what the events say', () => {
  it('is the tree and its content, whatever happened and however the signals fell together', async () => {
    await fc.assert(
      fc.asyncProperty(steps, steps, async (before, live) => {
        const trial = new Trial();
        await trial.begin(before);
        await trial.run(live);
        await trial.settle();
        trial.check();
        await trial.engine.stop();
      }),
      runs,
    );
  });

  it('is right again after a comparison when signals were lost', async () => {
    await fc.assert(
      fc.asyncProperty(steps, steps, steps, async (before, live, lost) => {
        const trial = new Trial();
        await trial.begin(before);
        await trial.run(live);
        await trial.run(lost.filter((step) => 'run' in step));
        trial.disk.lose();
        await trial.reconcile();
        await trial.settle();
        trial.check();
        await trial.engine.stop();
      }),
      runs,
    );
  });

  it('is right after a crash at any time and changes while nobody watched', async () => {
    await fc.assert(
      fc.asyncProperty(steps, steps, steps, async (before, live, away) => {
        const trial = new Trial();
        await trial.begin(before);
        await trial.run(live);
        await trial.engine.stop();
        await trial.run(away.filter((step) => 'run' in step));
        await trial.restart();
        await trial.settle();
        trial.check();
        await trial.engine.stop();
      }),
      runs,
    );
  });

  it('is right when the outbox was full for a while', async () => {
    await fc.assert(
      fc.asyncProperty(steps, steps, steps, async (before, live, full) => {
        const trial = new Trial();
        await trial.begin(before);
        await trial.run(live);
        trial.store.answer = 'full';
        await trial.run(full);
        await trial.run([{ wait_ms: 70 }, { wait_ms: 1_000 }, { wait_ms: 1_000 }]);
        trial.store.answer = 'committed';
        await trial.run([{ wait_ms: 1_000 }]);
        await trial.settle();
        trial.check();
        await trial.engine.stop();
      }),
      runs,
    );
  });

  it('is right where the outbox has room for a few events at once', async () => {
    await fc.assert(
      fc.asyncProperty(steps, steps, fc.integer({ min: 3, max: 12 }), async (before, live, room) => {
        const trial = new Trial();
        await trial.begin(before);
        trial.store.room = room;
        await trial.run(live);
        await trial.run([{ wait_ms: 1_000 }, { wait_ms: 1_000 }]);
        await trial.settle();
        trial.check();
        await trial.engine.stop();
      }),
      runs,
    );
  });

  it('is right, if later, where the kernel grants too few watches', async () => {
    await fc.assert(
      fc.asyncProperty(steps, steps, fc.nat(3), async (before, live, watches_max) => {
        const trial = new Trial();
        trial.disk.watches_max = watches_max;
        await trial.begin(before);
        await trial.run(live);
        await trial.run([{ wait_ms: 5_000 }]);
        await trial.settle();
        trial.check();
        await trial.engine.stop();
      }),
      runs,
    );
  });
});
