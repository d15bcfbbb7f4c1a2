import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import type { Moment } from '../../../src/manager/database/database-clock-store.ts';
import { type Use, UseStore } from '../../../src/manager/sandboxes/use-store.ts';
import { type CallInProgress, Uses } from '../../../src/manager/sandboxes/uses.ts';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';
import { describeOnStores } from '../../support/stores.ts';

vi.setConfig({ testTimeout: 120_000 });

const TICK_MS = 300;

/** A store that counts what it writes. */
class CountingStore extends UseStore {
  writes = 0;

  override restart(sandbox_id: string, now: Moment): Promise<boolean> {
    this.writes += 1;
    return super.restart(sandbox_id, now);
  }

  override note(uses: Use[], seen: Moment): Promise<Map<string, number>> {
    this.writes += uses.length;
    return super.note(uses, seen);
  }
}

/** A sandbox with an idle time that two replicas serve; time moves in ticks, and each replica does its work at each. */
async function twoReplicas(url: string, config: object) {
  const parts = await scriptedParts(url);
  const { clock, claim, sandboxes, housekeeping, database } = parts;
  const named = await claim({ config });
  const stores = [new CountingStore(database), new CountingStore(database)] as const;
  const replicas = stores.map((store) => new Uses(parts.services.clock, store));
  const { sandbox_id } = named;
  const expire = async (uses: Uses) => {
    const now_ms = clock.wallMs();
    const { rows } = await housekeeping.expired(parts.services.clock.moment(), 100, []);
    if (rows.length === 0 || uses.isInUse(sandbox_id)) return;
    await sandboxes.pause({ sandbox_id, team_id: null }, 'idle_ttl_expired', now_ms).catch(() => {});
  };
  const replica = (i: number) => replicas[i] as Uses;
  const get = () => sandboxes.get(named);
  return {
    ...parts,
    named,
    stores,
    replica,
    get,
    begin: async (i: number): Promise<CallInProgress> => replica(i).begin(await get()),
    /** `atTick` is called after each one. */
    async pass(by_ms: number, atTick: () => Promise<void> = async () => {}): Promise<void> {
      for (const end_ms = clock.wallMs() + by_ms; clock.wallMs() < end_ms; ) {
        await clock.advance(Math.min(TICK_MS, end_ms - clock.wallMs()));
        for (const uses of replicas) await uses.run();
        for (const uses of replicas) await expire(uses);
        await atTick();
      }
    },
  };
}

describeOnStores('a sandbox with an idle time', (fresh) => {
  it('is paused at its end, not before, and anew after each resume', async () => {
    const { pass, get, sandboxes, named, runtime } = await twoReplicas(await fresh(), { idle_ttl: 60 });
    for (const runtime_generation of [1, 2]) {
      await pass(59_900);
      expect(await get()).toMatchObject({ status: 'running', runtime_generation });
      await pass(TICK_MS);
      expect(await get()).toMatchObject({ status: 'paused' });
      await pass(TICK_MS);
      await sandboxes.resume(named, null);
    }
    expect(runtime.calls.filter((call) => call.startsWith('pause'))).toHaveLength(2);
  });

  it('is never paused while a call through any replica is in progress, and its idle time from the last end on', async () => {
    const idle_ms = 3_000;
    const step = fc.record({
      wait_ms: fc.oneof(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 0, max: 5_000 })),
      replica: fc.nat(1),
      begins: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 10 }), async (steps) => {
        const { begin, pass, get, clock, sandboxes, named } = await twoReplicas(await fresh(), {
          idle_ttl: idle_ms / 1000,
        });
        const open: CallInProgress[] = [];
        let used_ms = clock.wallMs();
        const check = async () => {
          const idle_for_ms = open.length > 0 ? 0 : clock.wallMs() - used_ms;
          const { status } = await get();
          if (idle_for_ms < idle_ms) expect([idle_for_ms, status]).toEqual([idle_for_ms, 'running']);
          if (idle_for_ms >= idle_ms + TICK_MS)
            expect([idle_for_ms, status]).toEqual([idle_for_ms, 'paused']);
        };
        for (const { wait_ms, replica, begins } of steps) {
          await pass(wait_ms, check);
          if (begins) {
            if ((await get()).status === 'paused') await sandboxes.resume(named, null);
            const call = await begin(replica);
            expect(call.is_noted).toBe(true);
            open.push(call);
          }
          const ended = begins ? undefined : open.shift();
          ended?.end();
          if (begins || ended) used_ms = clock.wallMs();
          await check();
        }
        if (open.length > 0) used_ms = clock.wallMs();
        for (const { end } of open.splice(0)) end();
        await pass(idle_ms + TICK_MS, check);
        expect((await get()).status).toBe('paused');
      }),
      { numRuns: 8 },
    );
  });

  it('costs a write every few seconds while it is used, however often', async () => {
    const { begin, pass, get, stores, clock } = await twoReplicas(await fresh(), { idle_ttl: 600 });
    const began_ms = clock.wallMs();
    for (let i = 0; i < 200; i++) {
      (await begin(i % 2)).end();
      await pass(100);
    }
    for (const { writes } of stores) expect(writes).toBeLessThanOrEqual(5);
    await pass(5_000 + TICK_MS);
    const ended_ms = (await get()).idle_expires_at_ms ?? 0;
    expect(ended_ms - 600_000 - began_ms).toBe(19_900);
  });

  it('that has none is never paused and never written, until a change gives it one', async () => {
    const { begin, pass, get, stores, sandboxes, named } = await twoReplicas(await fresh(), {});
    (await begin(0)).end();
    await pass(36_000);
    expect([stores[0].writes, (await get()).status]).toEqual([0, 'running']);
    const call = await begin(0);
    await sandboxes.change(named, { idle_ttl: 10 });
    await pass(30_000);
    expect((await get()).status).toBe('running');
    call.end();
    await pass(10_000 + TICK_MS);
    expect((await get()).status).toBe('paused');
    await sandboxes.resume(named, null);
    await sandboxes.change(named, { idle_ttl: 0 });
    await pass(30_000);
    expect((await get()).status).toBe('running');
  });

  it('is paused or used, never both: the one that comes second learns of it', async () => {
    const { replica, get, named, sandboxes, clock, runtime, pass } = await twoReplicas(await fresh(), {
      idle_ttl: 1,
    });
    const read = await get();
    await clock.advance(1_000);
    // Used first: the pause does not begin.
    const call = await replica(0).begin(read);
    const pausing = sandboxes.pause(named, 'idle_ttl_expired', clock.wallMs());
    await expect(pausing).rejects.toMatchObject({ code: 'conflict' });
    call.end();
    // Paused first: the call is told, during the pause and after it.
    const again = await get();
    await clock.advance(2_000);
    const release = runtime.hold('pause');
    const paused = sandboxes.pause(named, 'idle_ttl_expired', clock.wallMs());
    await vi.waitFor(async () => expect((await get()).operation).toBe('pausing'));
    const late = await replica(1).begin(again);
    expect(late.is_noted).toBe(false);
    release();
    await paused;
    expect((await replica(1).begin(again)).is_noted).toBe(false);
    late.end();
    await pass(TICK_MS);
    expect((await get()).status).toBe('paused');
  });
});
