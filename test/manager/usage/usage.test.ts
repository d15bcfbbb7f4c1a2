import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import type { UsageWindow } from '../../../src/contract/usage.ts';
import { killable } from '../../support/manager/killable-manager.ts';
import type { Client } from '../../support/manager/manager-client.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

vi.setConfig({ testTimeout: 120_000 });

const TEAM = 'team_1';
const PATH = '/api/v1/usage/windows';
const MEMORY = `${PATH}?window_type=sandbox.runtime_mib_milliseconds`;
const CPU = `${PATH}?window_type=sandbox.runtime_millicpu_milliseconds`;

async function used(client: Client): Promise<UsageWindow[]> {
  return (await client.get(MEMORY)).data.windows;
}

describeOnStores('usage windows', (fresh) => {
  it('are closed at pause, memory change and deletion, and not while paused', async () => {
    const manager = await startManager(await fresh(), { options: { region: 'eu-1' } });
    const client = await manager.client(TEAM, 'sandboxes:write', 'usage:read');
    const first = await client.claim({ resources: { memory: '256Mi', cpu: 0.2 } });
    const none = await client.get(CPU);
    expect([none.status, none.data]).toEqual([200, { windows: [], next_cursor: expect.stringMatching(/./) }]);
    expect(await used(client)).toEqual([]);
    await client.call('PUT', `/api/v1/sandboxes/${first}`, { config: { resources: { memory: '512Mi' } } });
    await client.post(`/api/v1/sandboxes/${first}/pause`);
    await client.call('PUT', `/api/v1/sandboxes/${first}`, { config: { resources: { memory: '128Mi' } } });
    await client.post(`/api/v1/sandboxes/${first}/resume`);
    await client.call('DELETE', `/api/v1/sandboxes/${first}`);
    const windows = await used(client);
    const length_ms = (each: UsageWindow) => Date.parse(each.window_end) - Date.parse(each.window_start);
    expect(windows.map((each) => each.value / length_ms(each))).toEqual([256, 512, 128]);
    const cpu: UsageWindow[] = (await client.get(CPU)).data.windows;
    expect(cpu.map((each) => [each.value / length_ms(each), each.unit])).toEqual(
      windows.map(() => [200, 'millicpu_milliseconds']),
    );
    expect(windows[0]).toEqual({
      window_id: expect.stringMatching(/^win_/),
      ...{ region_id: 'eu-1', cluster_id: 'local', window_type: 'sandbox.runtime_mib_milliseconds' },
      ...{ subject_type: 'sandbox', subject_id: first, sandbox_id: first, unit: 'mib_milliseconds' },
      ...{
        window_start: expect.any(String),
        window_end: windows[1]?.window_start,
        value: expect.any(Number),
      },
      recorded_at: expect.any(String),
    });
  });

  it('are unavailable with metering off, and begin when it is switched on again', async () => {
    const url = await fresh();
    const folder = scratchFolder();
    const off = await startManager(url, { folder, options: { metering: 'off' } });
    const client = await off.client(TEAM, 'sandboxes:write', 'usage:read');
    await client.claim();
    const { status, headers, error } = await client.get(PATH);
    expect([status, error?.code]).toEqual([503, 'unavailable']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    await off.stop();
    const on = await startManager(url, { folder });
    const again = await on.client(TEAM, 'sandboxes:write', 'usage:read');
    const [sandbox] = (await again.get('/api/v1/sandboxes')).data.sandboxes;
    await again.call('DELETE', `/api/v1/sandboxes/${sandbox.id}`);
    const [window] = await used(again);
    expect(Date.parse(window?.window_start ?? '')).toBeGreaterThan(Date.parse(sandbox.claimed_at));
  });

  it('counts a sandbox that outlives its managers once, without gaps', async () => {
    const { call, killAndStart, end } = await killable(await fresh());
    const { sandbox_id } = (await call('POST', '/sandboxes')).data;
    const { claimed_at } = (await call('GET', `/sandboxes/${sandbox_id}`)).data;
    for (let i = 0; i < 3; i++) {
      await sleep(100);
      await killAndStart();
    }
    expect((await call('DELETE', `/sandboxes/${sandbox_id}`)).status).toBe(202);
    await killAndStart();
    const type = 'sandbox.runtime_mib_milliseconds';
    const { windows } = (await call('GET', `/usage/windows?window_type=${type}`)).data as {
      windows: UsageWindow[];
    };
    let at = claimed_at;
    for (const { window_start, window_end, value } of windows) {
      expect(window_start).toBe(at);
      expect(value).toBe(512 * (Date.parse(window_end) - Date.parse(window_start)));
      at = window_end;
    }
    expect(Date.parse(at) - Date.parse(claimed_at)).toBeGreaterThan(300);
    await end();
  }, 120_000);
});
