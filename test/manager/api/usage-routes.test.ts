import { expect, it, vi } from 'vitest';
import type { UsageWindow } from '../../../src/contract/usage.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { describeOnStores } from '../../support/stores.ts';

vi.setConfig({ testTimeout: 120_000 });

const TEAM = 'team_1';
const PATH = '/api/v1/usage/windows';

describeOnStores('usage windows', (fresh) => {
  it('are read in pages by a cursor that is never empty, by their own team only', async () => {
    const manager = await startManager(await fresh());
    const client = await manager.client(TEAM, 'sandboxes:write', 'usage:read');
    const other = await manager.client('team_2', 'usage:read');
    const start = (await client.get(PATH)).data;
    expect(start).toEqual({ windows: [], next_cursor: expect.stringMatching(/./) });
    for (let i = 0; i < 3; i++) {
      await client.call('DELETE', `/api/v1/sandboxes/${await client.claim()}`);
    }
    const pages: string[] = [];
    let cursor: string = start.next_cursor;
    for (let i = 0; i < 7; i++) {
      const { data } = await client.get(`${PATH}?limit=1&cursor=${cursor}`);
      pages.push(...data.windows.map(({ window_id }: UsageWindow) => window_id));
      if (i === 6) expect(data.next_cursor).toBe(cursor);
      cursor = data.next_cursor;
    }
    expect(new Set(pages).size).toBe(6);
    expect(pages).toEqual(
      (await client.get(PATH)).data.windows.map(({ window_id }: UsageWindow) => window_id),
    );
    expect((await other.get(PATH)).data.windows).toEqual([]);
    expect((await client.get(`${PATH}?window_type=sandbox.egress_bytes`)).data.windows).toEqual([]);
    expect((await client.get(`${PATH}?limit=1000000000`)).data.windows).toHaveLength(6);
    expect((await client.get(`${PATH}?limit=1e9`)).data.windows).toHaveLength(6);
    const bad: [string, string][] = [
      ['limit=0', 'limit'],
      ['limit=-1', 'limit'],
      ['limit=1.5', 'limit'],
      ['limit=many', 'limit'],
      ['limit=', 'limit'],
      ['window_type=cpu', 'window_type'],
      ['cursor=', 'cursor'],
      [`cursor=${cursor.slice(0, -1)}`, 'cursor'],
      [`cursor=${cursor.startsWith('A') ? 'B' : 'A'}${cursor.slice(1)}`, 'cursor'],
      ['colour=red', 'colour'],
    ];
    for (const [query, field] of bad) {
      const { status, error } = await client.get(`${PATH}?${query}`);
      expect({ query, status, field: error?.details?.field }).toEqual({ query, status: 400, field });
    }
    expect((await other.get(`${PATH}?cursor=${cursor}`)).error?.details?.field).toBe('cursor');
    const without = await manager.client(TEAM, 'sandboxes:write', 'quota:read');
    expect((await without.get(PATH)).status).toBe(403);
  });
});
