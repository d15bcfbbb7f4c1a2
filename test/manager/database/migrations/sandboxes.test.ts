import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { SandboxStore } from '../../../../src/manager/sandboxes/sandbox-store.ts';
import { sandboxView } from '../../../../src/manager/sandboxes/sandbox-view.ts';
import { opened, SEAL } from '../../../support/manager/outbox.ts';
import { rowOf } from '../../../support/manager/sandbox-rows.ts';
import { describeOnStores } from '../../../support/stores.ts';

describeOnStores('a database from before sandboxes had metadata', (fresh) => {
  it('keeps its sandboxes, without metadata, and takes new ones with metadata', async () => {
    const url = await fresh();
    const before = await opened(url);
    const old_store = new SandboxStore(before);
    await old_store.write((tx) => old_store.insert(tx, rowOf('old')));
    await sql`delete from kysely_migration where name >= '007'`.execute(before.db);
    await sql`alter table sandboxes drop column metadata`.execute(before.db);
    const store = new SandboxStore(await opened(url));
    await store.write((tx) => store.insert(tx, rowOf('new', { metadata: '{"a":"b"}' })));
    const { rows } = await store.list('team_1', { limit: 10, offset: 0 });
    const views = rows.map((row) => sandboxView(row, SEAL));
    expect(Object.fromEntries(views.map(({ id, metadata }) => [id, metadata]))).toEqual({
      old: {},
      new: { a: 'b' },
    });
  });
});
