import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createDaemonClient, createManagerClient } from '../../src/client/client.ts';
import { FrailLine } from '../support/client/frail-line.ts';
import { startDelivering } from '../support/daemon/running-daemon.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { startScripted } from '../support/manager/scripted-manager.ts';
import { ScriptedRuntime } from '../support/manager/scripted-runtime.ts';
import { scratchFolder } from '../support/scratch.ts';

it('the feed is followed over broken connections: each event once, and a stored cursor goes on', async () => {
  const { manager, client, team } = await startScripted(`sqlite:${join(scratchFolder(), 'manager.db')}`);
  const { token } = await client('team_1', 'sandboxes:read', 'webhooks:read', 'usage:read');
  const line = await FrailLine.to(Number(new URL(manager.url).port), 2_000);
  const reader = createManagerClient({ url: line.url, token });
  const ids = [];
  for (let i = 0; i < 12; i++) ids.push(await team.claim());
  for (const id of ids) await team.call('DELETE', `/api/v1/sandboxes/${id}`);

  const seen: string[] = [];
  let cursor = '';
  for await (const event of reader.events({ from_oldest: true, event_type: 'sandbox.deleted' })) {
    expect(event.event_type).toBe('sandbox.deleted');
    seen.push(JSON.parse(event.body).sandbox_id);
    cursor = event.cursor;
    if (seen.length === 10) break;
  }
  for await (const { body } of reader.events({ cursor, event_type: 'sandbox.deleted' })) {
    seen.push(JSON.parse(body).sandbox_id);
    if (seen.length === 12) break;
  }
  expect(seen).toEqual(ids);
  expect(line.breaks).toBeGreaterThan(0);
  await expect(reader.events({ cursor: 'damaged' }).next()).rejects.toMatchObject({
    code: 'invalid_request',
  });
});

it('lists are read page by page to their end', async () => {
  const options = { allow_webhook_cidr: ['127.0.0.0/8'] };
  const database = `sqlite:${join(scratchFolder(), 'manager.db')}`;
  const { manager, client } = await startManager(database, { options, runtime: new ScriptedRuntime() });
  const team = await client('team_1', 'sandboxes:write');
  const { token } = await client('team_1', 'sandboxes:read', 'webhooks:read', 'usage:read');
  const reader = createManagerClient({ url: manager.url, token });
  const webhook = { url: 'http://127.0.0.1:9/hook' };
  const ids = new Set<string>();
  for (let i = 0; i < 5; i++) ids.add(await team.claim({ webhook }));
  const listed = new Set<string>();
  for await (const { id } of reader.sandboxes({ limit: 2 })) listed.add(id);
  expect(listed).toEqual(ids);
  for (const id of ids) await team.call('DELETE', `/api/v1/sandboxes/${id}`);
  const deleted = new Set<string>();
  for await (const { sandbox_id } of reader.deliveries({ limit: 2, event_type: 'sandbox.deleted' }))
    deleted.add(sandbox_id);
  expect(deleted).toEqual(ids);
  const windows: string[] = [];
  for await (const page of reader.usageWindows({ limit: 2 }))
    windows.push(...page.windows.map(({ window_id }) => window_id));
  expect(windows.length).toBe(new Set(windows).size);
  expect(windows.length).toBeGreaterThanOrEqual(5);
});

it("a sandbox's events are followed from any sequence on, and its deliveries listed", async () => {
  const { port, token, publish } = await startDelivering();
  const { sandbox } = createDaemonClient({ url: `http://127.0.0.1:${port}`, token });
  for (let step = 1; step <= 5; step++) await publish(`{"step":${step}}`);
  const sequences: number[] = [];
  for await (const { sequence, event_type, body } of sandbox.events({ after: 0 })) {
    expect(JSON.parse(body)).toMatchObject({ sequence, event_type });
    sequences.push(sequence);
    if (sequence === 6) break;
  }
  expect(sequences).toEqual([1, 2, 3, 4, 5, 6]);
  const listed: (number | null)[] = [];
  for await (const { sequence } of sandbox.deliveries({ limit: 2 })) listed.push(sequence);
  expect(listed).toEqual([6, 5, 4, 3, 2, 1]);
});
