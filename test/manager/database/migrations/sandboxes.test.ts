import type { Kysely } from 'kysely';
import { expect, it } from 'vitest';
import { EVENT_TYPES } from '../../../../src/contract/events.ts';
import { NO_BANDWIDTH } from '../../../../src/manager/config/bandwidth.ts';
import { SandboxStore } from '../../../../src/manager/sandboxes/sandbox-store.ts';
import { sandboxView } from '../../../../src/manager/sandboxes/sandbox-view.ts';
import { undoFrom } from '../../../support/manager/older-database.ts';
import { opened, SEAL } from '../../../support/manager/outbox.ts';
import { rowOf } from '../../../support/manager/sandbox-rows.ts';
import { describeOnStores } from '../../../support/stores.ts';

const LIMIT = { ...NO_BANDWIDTH, egress_bandwidth_bytes_per_second: 5 };

describeOnStores('a database from before sandboxes had metadata and bandwidth', (fresh) => {
  it('keeps its sandboxes, without either, and takes new ones with both', async () => {
    const url = await fresh();
    const before = await opened(url);
    const old_store = new SandboxStore(before);
    await old_store.write((tx) => old_store.insert(tx, rowOf('old')));
    await undoFrom(before.db as unknown as Kysely<never>, '007');
    const store = new SandboxStore(await opened(url));
    await store.write((tx) =>
      store.insert(
        tx,
        rowOf('new', { metadata: '{"a":"b"}', bandwidth: JSON.stringify(LIMIT), disk_mib: 128 }),
      ),
    );
    const { rows } = await store.list('team_1', { limit: 10, offset: 0 });
    const views = rows.map((row) => sandboxView(row, SEAL));
    const shown = views.map(({ id, metadata, bandwidth }) => [id, { metadata, bandwidth }]);
    expect(Object.fromEntries(shown)).toEqual({
      old: { metadata: {}, bandwidth: NO_BANDWIDTH },
      new: { metadata: { a: 'b' }, bandwidth: LIMIT },
    });
    expect(rows.map(({ disk_mib }) => disk_mib).sort()).toEqual([128, null]);
  });
});

describeOnStores('a database from before lists had an index of metadata', (fresh) => {
  it('finds its sandboxes by every pair, and those of no one else', async () => {
    const url = await fresh();
    const before = await opened(url);
    const old_store = new SandboxStore(before);
    const odd = { 'app/tier': 'x:y=ü "quoted" %', empty: '', number: '5', fox: '🦊' };
    for (const [id, overrides] of [
      ['old', { metadata: JSON.stringify(odd) }],
      ['other', { metadata: JSON.stringify(odd), team_id: 'team_2' }],
      ['gone', { metadata: JSON.stringify(odd), deleted_at_ms: 5 }],
      ['plain', { metadata: null }],
      ['none', { metadata: '{}' }],
    ] as const) {
      await old_store.write((tx) => old_store.insert(tx, rowOf(id, overrides)));
    }
    await undoFrom(before.db as unknown as Kysely<never>, '013');
    const store = new SandboxStore(await opened(url));
    for (const [key, text] of Object.entries(odd)) {
      const { rows } = await store.list('team_1', { limit: 10, offset: 0, metadata: [`${key}:${text}`] });
      expect([key, rows.map(({ sandbox_id }) => sandbox_id)]).toEqual([key, ['old']]);
    }
  });
});

describeOnStores('a database from before webhooks were limited', (fresh) => {
  it('has webhooks that are sent every kind', async () => {
    const url = await fresh();
    const before = await opened(url);
    const old_store = new SandboxStore(before);
    const row = rowOf('old', { webhook_url: 'http://127.0.0.1:9/' });
    await old_store.write((tx) => old_store.insert(tx, row));
    await undoFrom(before.db as unknown as Kysely<never>, '011');
    const store = new SandboxStore(await opened(url));
    const found = await store.find(store.db, 'old', null);
    expect(found && sandboxView(found, SEAL).webhook).toMatchObject({
      watch_ignore: [],
      events: EVENT_TYPES,
    });
  });
});
