import { expect, it } from 'vitest';
import type { Clock } from '../../src/base/clock.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { SANDBOXES } from '../support/manager/scripted-manager.ts';
import { usageOf } from '../support/manager/scripted-networks.ts';
import { ScriptedRuntime } from '../support/manager/scripted-runtime.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { scratchFolder } from '../support/scratch.ts';
import { describeOnStores } from '../support/stores.ts';

interface Window {
  window_type: string;
  sandbox_id: string;
  value: number;
}

/** A manager with a metered network, and what its team sees of one sandbox. */
async function metered(
  database: string,
  given: { clock?: Clock; folder?: string; alive?: string; replicas?: number } = {},
) {
  const runtime = new ScriptedRuntime();
  if (given.alive) runtime.states.set(given.alive, 'running');
  runtime.networks.mode = { mode: 'metered', reason: null, block_all: 'network_namespace' };
  const { client, stop } = await startManager(database, { runtime, ...given });
  const team = await client('team_1', 'sandboxes:write', 'usage:read');
  return {
    ...{ runtime, networks: runtime.networks, team, stop },
    async record(id: string) {
      return (await team.get(`${SANDBOXES}/${id}?include_deleted=true`)).data;
    },
    async inList(id: string) {
      const { sandboxes } = (await team.get(SANDBOXES)).data;
      return sandboxes.find((each: { id: string }) => each.id === id);
    },
    async bytes(id: string): Promise<number[][]> {
      const { windows } = (await team.get('/api/v1/usage/windows')).data;
      const of = (type: string) =>
        (windows as Window[])
          .filter(({ window_type, sandbox_id }) => window_type === type && sandbox_id === id)
          .map(({ value }) => value);
      return [of('sandbox.egress_bytes'), of('sandbox.ingress_bytes')];
    },
    async metric(name: string, direction: string) {
      const text = await (await fetch(`${team.url}/metrics`)).text();
      return Number(
        new RegExp(`^sandbox_manager_${name}\\{direction="${direction}"\\} (.*)$`, 'm').exec(text)?.[1],
      );
    },
  };
}

describeOnStores("a sandbox's traffic", (fresh) => {
  it('is in its record, in windows closed at pause and end, and in sums that outlive it', async () => {
    const { team, networks, runtime, record, inList, bytes, metric } = await metered(await fresh());
    const id = await team.claim();
    expect((await inList(id)).network_usage).toEqual(usageOf(0, 0));
    networks.pass(id, 1_000, 10);
    expect((await record(id)).network_usage).toEqual(usageOf(1_000, 10));
    expect(await bytes(id)).toEqual([[], []]);
    await team.post(`${SANDBOXES}/${id}/pause`);
    expect(await bytes(id)).toEqual([[1_000], [10]]);
    expect((await inList(id)).network_usage).toEqual(usageOf(1_000, 10));
    await team.post(`${SANDBOXES}/${id}/resume`);
    networks.pass(id, 500, 0);
    const child = (await team.post(`${SANDBOXES}/${id}/fork`)).data.sandbox;
    expect(child.network_usage).toEqual(usageOf(0, 0));
    // The first cleanup fails behind the final windows, the next one finds no network any more.
    runtime.fail('remove', new Error('busy'));
    networks.pass(id, 24, 1);
    await team.call('DELETE', `${SANDBOXES}/${id}`);
    await expect.poll(() => runtime.calls).toContain(`remove ${id}`);
    networks.counts.delete(id);
    runtime.fail('remove', null);
    await expect.poll(async () => (await record(id)).status, { timeout: 60_000 }).toBe('deleted');
    expect(runtime.calls.filter((call) => call === `remove ${id}`).length).toBeGreaterThan(1);
    expect(networks.calls).toContain(`cut ${id}`);
    expect(await bytes(id)).toEqual([
      [1_000, 524],
      [10, 1],
    ]);
    expect((await record(id)).network_usage).toEqual(usageOf(1_524, 11));
    expect(await metric('network_passed_bytes_total', 'egress')).toBe(1_524);
    expect(await metric('network_passed_packets_total', 'ingress')).toBe(11);
    expect(await metric('network_wait_seconds_total', 'egress')).toBe(0);
  });

  it('is shown by a replica elsewhere as it was last seen', async ({ skip }) => {
    const database = await fresh();
    if (database.startsWith('sqlite:')) skip('a SQLite file has one manager');
    const folder = scratchFolder();
    const clock = new ManualClock();
    const here = await metered(database, { clock, folder, replicas: 2 });
    const id = await here.team.claim();
    here.networks.pass(id, 7, 8);
    const elsewhere = await metered(database, { folder, alive: id, replicas: 2 });
    expect((await elsewhere.record(id)).network_usage).toEqual(usageOf(0, 0));
    await clock.advance(5_000);
    const seen = async () =>
      [await elsewhere.record(id), await elsewhere.inList(id)].map((each) => each.network_usage);
    await expect.poll(seen).toEqual([usageOf(7, 8), usageOf(7, 8)]);
    expect(await elsewhere.metric('network_passed_bytes_total', 'egress')).toBe(0);
  });

  it('is not told where nothing is counted', async () => {
    const { team, networks, record, inList, bytes } = await metered(await fresh());
    networks.mode = { mode: 'host-unmetered', reason: 'not root', block_all: null };
    const id = await team.claim();
    expect([(await record(id)).network_usage, (await inList(id)).network_usage]).toEqual([null, null]);
    await team.post(`${SANDBOXES}/${id}/pause`);
    expect(await bytes(id)).toEqual([[], []]);
  });
});
