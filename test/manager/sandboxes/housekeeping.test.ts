import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { UsageStore } from '../../../src/manager/usage/usage-store.ts';
import type { RuntimeChange, RuntimeState } from '../../../src/runtime/runtime.ts';
import { startConsumer } from '../../support/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import { opened } from '../../support/manager/outbox.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { startScripted, statusOf } from '../../support/manager/scripted-manager.ts';
import { ScriptedRuntime } from '../../support/manager/scripted-runtime.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

const LATER = { timeout: 60_000, interval: 100 };

/** Sandboxes of one team answer nothing: every question waits for as long as the test runs. */
class SilentRuntime extends ScriptedRuntime {
  readonly silent = new Set<string>();
  readonly #end = Promise.withResolvers<void>();

  /** Those that wait fail at last. */
  giveUp(): void {
    this.#end.promise.catch(() => {});
    this.#end.reject(new Error('nobody answered'));
  }

  override async inspect(sandbox_id = ''): Promise<RuntimeState> {
    return this.silent.has(sandbox_id) ? (this.#end.promise as never) : super.inspect(sandbox_id);
  }

  override async pause(sandbox_id = ''): Promise<RuntimeChange> {
    return this.silent.has(sandbox_id) ? (this.#end.promise as never) : super.pause(sandbox_id);
  }
}

async function scene() {
  const runtime = new SilentRuntime();
  const database = `sqlite:${join(scratchFolder(), 'manager.db')}`;
  const running = await startManager(database, { runtime });
  onTestFinished(() => runtime.giveUp());
  const hostile = await running.client('team_hostile', 'sandboxes:write');
  const other = await running.client('team_other', 'sandboxes:write');
  const claimSilent = async (config: object = {}) => {
    const id = await hostile.claim(config);
    runtime.silent.add(id);
    return id;
  };
  /** When all sandboxes were last looked at, and which of those that are metered did not run. */
  const look = async () => {
    const opened = await openDatabase(database);
    const at_ms = await new UsageStore(opened).lastLook();
    const unseen = await opened.db
      .selectFrom('leases')
      .select('sandbox_id')
      .where('last_seen_ms', 'is not', null)
      .execute();
    await opened.close();
    return { at_ms, unseen };
  };
  return { ...running, runtime, hostile, other, claimSilent, look };
}

describe('sandboxes whose daemons do not answer', () => {
  it('delay neither metering, nor the detection of dead runtimes, nor deletions of others', async () => {
    const { runtime, hostile, other, claimSilent, look } = await scene();
    const silent = await Promise.all(Array.from({ length: 40 }, () => claimSilent()));
    const dead = await other.claim();
    const { at_ms } = await look();
    await eventually(async () => expect((await look()).at_ms).toBeGreaterThan(at_ms), { timeout: 60_000 });
    expect((await look()).unseen).toEqual([]);
    runtime.states.set(dead, 'lost');
    await eventually(
      async () => expect((await other.get(`/api/v1/sandboxes/${dead}`)).data.status).toBe('failed'),
      { timeout: 60_000 },
    );
    expect((await hostile.call('DELETE', `/api/v1/sandboxes/${silent[0]}`)).status).toBe(202);
  });

  it('do not delay the end of the ttl of others', async () => {
    const { other, claimSilent } = await scene();
    await claimSilent({ ttl: 1 });
    const id = await other.claim({ ttl: 2 });
    await eventually(
      async () => expect((await other.get(`/api/v1/sandboxes/${id}`)).data.status).toBe('paused'),
      { timeout: 60_000 },
    );
  });
});

describeOnStores('a sandbox whose hard ttl has expired', (fresh) => {
  it('that cannot be deleted does not take the turn of one that can', async () => {
    const url = await fresh();
    const { client } = await startManager(url);
    const team = await client('team_1', 'sandboxes:write');
    const ids = await Promise.all(Array.from({ length: 101 }, () => team.claim()));
    const last = ids.at(-1) as string;
    const { db } = await opened(url);
    // Their secrets do not open any more, so that no deletion of theirs commits.
    const webhook = { webhook_url: 'http://127.0.0.1:9/', webhook_secret_sealed: 'damaged' };
    await db.updateTable('sandboxes').set(webhook).where('sandbox_id', '!=', last).execute();
    await db.updateTable('sandboxes').set({ hard_expires_at_ms: 1 }).execute();
    await eventually(async () => expect(await statusOf(team, last)).toBe('deleted'), LATER);
  });
});

describeOnStores('the end of a ttl', (fresh) => {
  it('pauses the sandbox, and the end of a hard ttl deletes it, within a second', async () => {
    const consumer = await startConsumer();
    const { runtime, team } = await startScripted(await fresh());
    const began_ms = Date.now();
    const id = await team.claim({ ttl: 1, hard_ttl: 2, webhook: { url: consumer.url } });
    await eventually(async () => expect(await statusOf(team, id)).toBe('paused'), { timeout: 60_000 });
    expect(Date.now() - began_ms).toBeLessThan(2_000);
    await eventually(async () => expect(await statusOf(team, id)).toBe('deleted'), { timeout: 60_000 });
    expect(Date.now() - began_ms).toBeGreaterThanOrEqual(2_000);
    const { event } = await consumer.arrival('sandbox.deleted');
    expect(event.payload).toEqual({ reason: 'ttl_expired', actor: null });
    expect(runtime.calls.filter((call) => call.startsWith('pause'))).toHaveLength(1);
  });
});
