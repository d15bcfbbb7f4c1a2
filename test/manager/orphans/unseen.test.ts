import { expect, it } from 'vitest';
import { watchJob } from '../../../src/manager/sandboxes/housekeeping.ts';
import { eventually } from '../../support/eventually.ts';
import { SANDBOXES, startScripted, statusOf } from '../../support/manager/scripted-manager.ts';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';
import { describeOnStores } from '../../support/stores.ts';

const LATER = { timeout: 60_000, interval: 10 };
const API = { reason: 'api', actor: null } as const;

describeOnStores('a recorded sandbox of which nothing is in sight', (fresh) => {
  it('keeps its status and is told, until it is seen again or a proof says that it has ended', async () => {
    const { claim, services, unseen, housekeeping, sandboxes, runtime } = await scriptedParts(await fresh());
    const [named, paused] = [await claim(), await claim()];
    await sandboxes.pause(paused, null);
    const watch = watchJob(services, housekeeping);
    for (const { sandbox_id } of [named, paused]) runtime.states.set(sandbox_id, 'absent');
    await watch.run();
    expect([(await sandboxes.get(named)).status, (await sandboxes.get(paused)).status]).toEqual([
      'running',
      'paused',
    ]);
    expect(unseen.trouble()).toContain('2 recorded sandboxes');
    expect(await unseen.metrics()[0]?.samples()).toEqual([{ value: 2 }]);
    await expect(sandboxes.pause(named, null)).rejects.toMatchObject({ code: 'unavailable' });
    await expect(sandboxes.resume(paused, null)).rejects.toMatchObject({ code: 'unavailable' });
    expect((await sandboxes.get(named)).status).toBe('running');
    runtime.states.set(named.sandbox_id, 'running');
    runtime.states.set(paused.sandbox_id, 'lost');
    await watch.run();
    expect([(await sandboxes.get(named)).status, (await sandboxes.get(paused)).status]).toEqual([
      'running',
      'failed',
    ]);
    expect(unseen.trouble()).toBeNull();
  });

  it('is cleaned up after its deletion once it is seen again, and not before', async () => {
    const { claim, unseen, sandboxes, deletions, recovery, runtime, clock, database } = await scriptedParts(
      await fresh(),
    );
    const named = await claim({ config: { webhook: { url: 'http://127.0.0.1:9/' } } });
    runtime.states.set(named.sandbox_id, 'absent');
    await deletions.delete(named.sandbox_id, 'team_1', API);
    await eventually(() => expect(unseen.trouble()).not.toBeNull(), LATER);
    const queued = await database.db.selectFrom('outbox').select('event_type').execute();
    expect(queued).toEqual([{ event_type: 'sandbox.deleted' }]);
    // Longer than a delivery takes at most.
    await clock.advance(25 * 3_600_000);
    expect((await sandboxes.get(named)).status).toBe('terminating');
    expect(runtime.calls.filter((call) => call.startsWith('remove'))).toEqual([]);
    runtime.states.set(named.sandbox_id, 'running');
    await eventually(async () => {
      await clock.advance(5 * 60_000);
      await recovery.run();
      expect((await sandboxes.getKept(named)).deleted_at_ms).not.toBeNull();
    }, LATER);
    expect(unseen.trouble()).toBeNull();
  });
});

describeOnStores('the answer of /readyz', (fresh) => {
  it('tells of a sandbox that is not in sight', async () => {
    const { runtime, team, manager } = await startScripted(await fresh());
    const id = await team.claim();
    runtime.states.set(id, 'absent');
    await eventually(async () => {
      const response = await fetch(`${manager.url}/readyz`);
      const { data } = (await response.json()) as { data: { degraded?: string[] } };
      expect([response.status, data.degraded]).toEqual([200, [expect.stringContaining('not in sight')]]);
    }, LATER);
    expect(await statusOf(team, id)).toBe('running');
    expect((await team.post(`${SANDBOXES}/${id}/pause`, {})).error?.code).toBe('unavailable');
  });
});
