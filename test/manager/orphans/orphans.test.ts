import { expect, it } from 'vitest';
import { newId } from '../../../src/base/ids.ts';
import { Orphans } from '../../../src/manager/orphans/orphans.ts';
import { RecordedStore } from '../../../src/manager/orphans/recorded-store.ts';
import { NOTHING_TAKEN } from '../../../src/manager/quotas/quota-store.ts';
import type { KeptSandbox } from '../../../src/runtime/runtime.ts';
import { opened, SILENT } from '../../support/manager/outbox.ts';
import { rowOf } from '../../support/manager/sandbox-rows.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { describeOnStores } from '../../support/stores.ts';

/** Of two that run and one that is paused. */
const USE = {
  ...{ memory_mib: 1224, cpu_millis: 200, disk_mib: 576 },
  ...{ active: 2, paused: 1, paused_memory_mib: 200 },
};

const KEPT: KeptSandbox = {
  team_id: 'team_1',
  state: 'running',
  memory_mib: 512,
  cpu_millis: 100,
  held_mib: null,
  disk_mib: 256,
  watch_dir: null,
  note: null,
  made: { pod_name: 'pod', persistence: 'root' },
};

async function scene(url: string) {
  const { db } = await opened(url);
  const clock = new ManualClock();
  const kept = new Map<string, KeptSandbox>();
  const closed: string[] = [];
  const runtime = {
    list: async () => [...kept.keys()],
    kept: async (id: string) => kept.get(id) ?? null,
    closeOff: async (id: string) => void closed.push(id),
  };
  const moved = { has_moved: false };
  const hasMoved = async () => moved.has_moved;
  const store = new RecordedStore(db);
  const asked: (readonly string[])[] = [];
  const asking = {
    recorded(ids: readonly string[]) {
      asked.push(ids);
      return store.recorded(ids);
    },
  };
  const just_recorded = new Set<string>();
  const wasRecorded = (id: string) => just_recorded.has(id);
  const orphans = new Orphans({ runtime, store: asking, wasRecorded, hasMoved, clock, log: SILENT });
  return { db, clock, kept, closed, runtime, moved, orphans, asked, just_recorded };
}

describeOnStores('sandboxes that are here and not recorded', (fresh) => {
  it('are asked for in the database, and those that were just found recorded are not', async () => {
    const { kept, orphans, asked, just_recorded } = await scene(await fresh());
    for (const id of ['sbx_watched', 'sbx_other']) kept.set(id, KEPT);
    just_recorded.add('sbx_watched');
    await orphans.look();
    expect(asked).toEqual([['sbx_other']]);
    just_recorded.clear();
    await orphans.look();
    expect(asked[1]).toEqual(['sbx_watched', 'sbx_other']);
  });

  it('are looked at although what is kept of one of them cannot be read', async () => {
    const { clock, kept, runtime, orphans } = await scene(await fresh());
    const ids = [1, 2, 3].map((at) => newId('sbx_', clock.wallMs() - 15_000 * at));
    const [first, , last] = ids as [string, string, string];
    for (const id of ids) kept.set(id, KEPT);
    const { kept: usual } = runtime;
    runtime.kept = async (id) => {
      if (id === first) throw new SyntaxError('Unexpected end of JSON input');
      return usual(id);
    };
    await orphans.look();
    expect(ids.map((id) => orphans.has(id))).toEqual([false, true, true]);
    // What was known of one before is not forgotten.
    runtime.kept = async (id) => {
      if (id === last) throw new SyntaxError('Unexpected end of JSON input');
      return usual(id);
    };
    await orphans.look();
    expect([ids.map((id) => orphans.has(id)), orphans.use().active]).toEqual([[true, true, true], 3]);
  });

  it('are told, counted and cut off once they are older than a claim can take', async () => {
    const { db, clock, kept, closed, orphans } = await scene(await fresh());
    const [old, young] = [newId('sbx_', clock.wallMs() - 15_000), newId('sbx_', clock.wallMs())];
    for (const id of [old, young, 'sbx_known', 'of-another-name']) kept.set(id, KEPT);
    kept.set(old, { ...KEPT, state: 'paused', disk_mib: null, held_mib: 200 });
    await db.insertInto('sandboxes').values(rowOf('sbx_known')).execute();
    await orphans.look();
    expect([orphans.has(old), orphans.has(young), orphans.has('sbx_known')]).toEqual([true, false, false]);
    expect(orphans.use()).toEqual(USE);
    expect([orphans.use(KEPT.team_id), orphans.use('another')]).toEqual([USE, NOTHING_TAKEN]);
    expect(closed).toEqual([old]);
    await clock.advance(15_000);
    await orphans.look();
    expect(orphans.use()).toEqual(USE);
    expect(orphans.trouble()).toContain('3 sandboxes here are not recorded');
    expect(await orphans.metrics()[0]?.samples()).toEqual([{ value: 3 }]);
    expect(closed).toEqual([old, young, 'of-another-name']);
    // Recorded again, and gone.
    await db.insertInto('sandboxes').values(rowOf(old)).execute();
    kept.delete(young);
    kept.delete('of-another-name');
    await orphans.look();
    expect([orphans.trouble(), orphans.use().disk_mib]).toEqual([null, 0]);
  });

  it('are none where they are gone by the time their row was looked for', async () => {
    const { clock, kept, runtime, orphans } = await scene(await fresh());
    const id = newId('sbx_', clock.wallMs() - 60_000);
    kept.set(id, KEPT);
    // Its deletion ends between the two looks.
    runtime.list = async () => {
      const ids = [...kept.keys()];
      kept.delete(id);
      return ids;
    };
    await orphans.look();
    expect(orphans.trouble()).toBeNull();
  });

  it('are another matter where the data directory is no longer that of the database', async () => {
    const { moved, orphans } = await scene(await fresh());
    moved.has_moved = true;
    await orphans.look();
    expect(orphans.trouble()).toContain('another data directory');
  });
});
