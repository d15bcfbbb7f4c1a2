import { beforeEach, describe, expect, it } from 'vitest';
import { GATHER_MS, VANISH_MS, WRITE_GATHER_MS } from '../../../src/watch/index/limits.ts';
import { emptyTree } from '../../../src/watch/index/stored-tree.ts';
import { PendingNames } from '../../../src/watch/signals/pending-names.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const dir = emptyTree('/w').root;

let clock: ManualClock;
let pending: PendingNames;

beforeEach(() => {
  clock = new ManualClock();
  pending = new PendingNames(clock);
});

const taken = () => pending.take(10).map(({ name }) => name);

describe('pending names', () => {
  it('are due at once, after a gathering, or after the gathering of writes', async () => {
    pending.add(dir, 'scanned');
    pending.signal(dir, 'appeared', 'rename', false);
    pending.signal(dir, 'written', 'change', false);
    const now_ms = clock.monotonicMs();
    expect([pending.nextDueMs(), taken()]).toEqual([now_ms, ['scanned']]);
    expect([pending.nextDueMs(), taken()]).toEqual([now_ms + GATHER_MS, []]);
    await clock.advance(GATHER_MS);
    expect([taken(), pending.nextDueMs()]).toEqual([['appeared'], now_ms + WRITE_GATHER_MS]);
    await clock.advance(WRITE_GATHER_MS);
    expect([taken(), pending.nextDueMs(), pending.size]).toEqual([['written'], null, 0]);
  });

  it('count once, with all their signals', () => {
    for (let i = 0; i < 3; i++) pending.signal(dir, 'a', 'rename', false);
    pending.signal(dir, 'a', 'change', false);
    expect(pending.size).toBe(1);
    expect(pending.pull(dir, 'a')).toMatchObject({ renames: 3, changed: true });
    expect(pending.pull(dir, 'a')).toBeNull();
  });

  it('know the name that was signalled right before, unless something came between', () => {
    pending.signal(dir, 'old', 'rename', false);
    pending.signal(dir, 'new', 'rename', false);
    pending.signal(dir, 'x', 'change', false);
    pending.signal(dir, 'other', 'rename', false);
    expect(pending.pull(dir, 'new')?.from).toMatchObject({ observation: { name: 'old' }, renames: 1 });
    expect(pending.pull(dir, 'other')?.from).toBeNull();
  });

  it('that wait for vanished nodes delay nothing else', async () => {
    pending.add(dir, 'a');
    const [observation] = pending.take(1);
    if (!observation) throw new Error('nothing was due');
    pending.requeue(observation, 'vanished');
    expect([pending.size, pending.unobserved, pending.oldestGeneration()]).toEqual([1, 0, Infinity]);
    await clock.advance(VANISH_MS);
    expect(taken()).toEqual(['a']);
  });

  it('of a crowded directory are dropped together', () => {
    for (const name of ['a', 'b', 'c']) pending.add(dir, name);
    expect(pending.collapse(3)).toEqual([]);
    expect(pending.collapse(2)).toEqual([dir]);
    expect(pending.size).toBe(0);
  });
});
