import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { Log } from '../../../src/base/log.ts';
import { Watcher } from '../../../src/watch/thread/watcher.ts';
import { MemoryStore } from '../../support/watch/memory-store.ts';
import { until } from '../../support/watch/watched-tree.ts';

let top: string;
let store: MemoryStore;
let watcher: Watcher;

beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), 'watcher-'));
  store = new MemoryStore();
  const log = pino({ level: 'silent' }) as Log;
  watcher = new Watcher({ watch_dir: top, ignore: ['*.tmp'], own_paths: [], clock: systemClock, log, store });
});

afterEach(async () => {
  await watcher.stop();
  rmSync(top, { recursive: true, force: true });
});

const told = () =>
  store.events.map(({ payload }) => `${payload.event_type} ${payload.path.slice(top.length + 1)}`);

describe('the watcher', () => {
  it('watches in its thread and commits to the store', async () => {
    writeFileSync(join(top, 'a'), '');
    await watcher.start();
    expect(watcher.status()).toMatchObject({ state: 'watching', index_size: 1, degraded: null });
    writeFileSync(join(top, 'b.tmp'), '');
    writeFileSync(join(top, 'b'), '');
    await until(() => told().length > 0, told);
    expect(told()).toEqual(['create b']);
    await until(
      () => watcher.status().events === 1,
      () => watcher.status(),
    );
    expect(watcher.status()).toMatchObject({ events: 1, directories_watched: 1, reconciles: { start: 1 } });
  });

  it('returns from a comparison when the differences are committed', async () => {
    await watcher.start();
    mkdirSync(join(top, 'd'));
    writeFileSync(join(top, 'd', 'f'), '');
    await watcher.reconcile('resume');
    expect(told()).toEqual(['create d', 'create d/f']);
    expect(watcher.status().reconciles).toMatchObject({ resume: 1 });
  });

  it('starts a new thread when one fails, and finds what was missed', async () => {
    writeFileSync(join(top, 'a'), '');
    await watcher.start();
    const commit = store.commit.bind(store);
    store.commit = () => Promise.reject(new Error('a fault of the store'));
    appendFileSync(join(top, 'a'), 'x');
    await until(
      () => watcher.status().degraded !== null,
      () => watcher.status(),
    );
    expect(watcher.status().degraded).toMatch(/is being restarted: a fault of the store/);
    store.commit = commit;
    await until(
      () => told().length > 0 && watcher.status().degraded === null,
      () => watcher.status(),
    );
    expect(told()).toEqual(['write a']);
  });

  it('may be stopped before it has started, and twice', async () => {
    const starting = watcher.start();
    await watcher.stop();
    await watcher.stop();
    expect(watcher.status().state).toBe('stopped');
    await starting;
  });
});
