import { writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import type { LifecycleEvent } from '../../../src/runtime/runtime.ts';
import { Sandboxes, spec, TRUST } from '../../support/runtime/sandboxes.ts';

vi.setConfig({ testTimeout: 120_000 });

const OUTBOX = 'var/lib/sandboxd/outbox.db';

const typesOf = (events: LifecycleEvent[] = []) =>
  events.map(({ sequence, event_type }) => `${sequence} ${event_type.replace('sandbox.', '')}`);

async function handedOver({ runtime }: Sandboxes, lifecycle_after: number): Promise<LifecycleEvent[]> {
  const events: LifecycleEvent[] = [];
  for await (const page of runtime.handOver('sbx-1', { ...TRUST, lifecycle_after })) {
    expect(page.records).toEqual([]);
    events.push(...(page.lifecycle ?? []));
  }
  return events;
}

describe("a sandbox's own life, without a webhook", () => {
  it('is told by its daemon, and after the end by its outbox, in the very bytes that it committed', async () => {
    const sandboxes = await Sandboxes.open('local-unsafe');
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1'));
    await runtime.pause('sbx-1', 'lunch');
    const first = await runtime.lifecycle('sbx-1', TRUST, 0);
    expect([typesOf(first?.events), first?.more, first?.refused]).toEqual([
      ['1 ready', '2 paused'],
      false,
      0,
    ]);
    await runtime.resume('sbx-1', null);
    expect(typesOf((await runtime.lifecycle('sbx-1', TRUST, 2))?.events)).toEqual(['3 resumed']);
    await runtime.end('sbx-1');
    expect(await runtime.lifecycle('sbx-1', TRUST, 0)).toBeNull();
    const left = await handedOver(sandboxes, 1);
    expect(typesOf(left)).toEqual(['2 paused', '3 resumed', '4 killed']);
    expect(left[0]).toEqual(first?.events[1]);
    expect(await handedOver(sandboxes, 1)).toEqual(left);
  });

  it('is not believed under another key, or where another program has written it', async () => {
    const sandboxes = await Sandboxes.open('local-unsafe');
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1'));
    await runtime.pause('sbx-1', null);
    const stranger = { ...TRUST, record_key: 'b8'.repeat(32) };
    expect(await runtime.lifecycle('sbx-1', stranger, 0)).toMatchObject({ events: [], refused: 2 });
    await runtime.end('sbx-1');
    const db = new Database(sandboxes.rootfs('sbx-1', OUTBOX));
    db.exec(`UPDATE records SET body = replace(body, 'team_1', 'team_2') WHERE sequence = 1;
      INSERT INTO records SELECT 99, 'evt_00000000-0000-7000-8000-000000000000', 'sandbox.resumed', sandbox_id, 99, headers,
        body, checksum, ' sandbox.forged', created_at_ms, mac FROM records WHERE sequence = 2;`);
    db.close();
    expect(typesOf(await handedOver(sandboxes, 0))).toEqual(['2 paused', '3 killed']);
  });

  it('keeps nothing from ending where its outbox is no outbox any more', async () => {
    const sandboxes = await Sandboxes.open('local-unsafe');
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1'));
    await runtime.end('sbx-1');
    writeFileSync(sandboxes.rootfs('sbx-1', OUTBOX), 'rubbish'.repeat(10_000));
    expect(await handedOver(sandboxes, 0)).toEqual([]);
  });
});
