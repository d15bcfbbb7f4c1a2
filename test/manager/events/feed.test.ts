import { describe, expect, it } from 'vitest';
import type { Log } from '../../../src/base/log.ts';
import { FEED_KEPT_MS } from '../../../src/contract/defaults.ts';
import type { FeedEvent } from '../../../src/contract/feed.ts';
import { Feed } from '../../../src/manager/events/feed.ts';
import { SEAL, SILENT } from '../../support/manager/outbox.ts';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';
import { describeOnStores } from '../../support/stores.ts';

const HOOK = { config: { webhook: { url: 'http://127.0.0.1:9/hook', secret: 'made for this test' } } };

type Scripted = Awaited<ReturnType<typeof scriptedParts>>;

/** What the feed tells a team, in order. */
async function told({ feed }: Scripted, team_id = 'team_1'): Promise<FeedEvent[]> {
  return (await feed.page(team_id, undefined, { limit: 1_000 })).events;
}

const typesOf = (events: FeedEvent[]) => events.map(({ event_type }) => event_type.replace('sandbox.', ''));

/** Runs the job of the feed by this name once. */
async function runJob({ feed }: Scripted, name: string): Promise<number> {
  const job = feed.jobs().find((each) => each.name === name);
  if (!job) throw new Error(`there is no job ${name}`);
  return job.run();
}

describeOnStores('the feed', (fresh) => {
  it("tells the life of a team's sandboxes as their daemons recorded it, with and without a webhook", async () => {
    const parts = await scriptedParts(await fresh());
    const { claim, sandboxes, forks, deletions, runtime, database } = parts;
    const plain = await claim();
    const hooked = await claim(HOOK);
    await sandboxes.pause(plain, null);
    const child = await forks.fork(hooked, {});
    await sandboxes.resume(plain, null);
    for (const { sandbox_id } of [plain, hooked]) {
      await deletions.delete(sandbox_id, 'team_1', { reason: 'api', actor: 'tok_1' });
    }
    await parts.operations.drained();
    const events = await told(parts);
    const of = (sandbox_id: string) => events.filter((event) => event.sandbox_id === sandbox_id);
    expect(typesOf(of(plain.sandbox_id))).toEqual(['ready', 'paused', 'resumed', 'deleted', 'killed']);
    expect(typesOf(of(hooked.sandbox_id))).toEqual(['ready', 'deleted', 'killed']);
    expect(typesOf(of(child.sandbox_id))).toEqual(['ready', 'paused']);
    const lives = [...runtime.lives.values()].flat();
    for (const { event_id, body, sequence } of lives) {
      expect(events).toContainEqual(expect.objectContaining({ event_id, body, sequence }));
    }
    const deleted = events.filter(({ event_type }) => event_type === 'sandbox.deleted');
    expect(deleted.map(({ sequence }) => sequence)).toEqual([null, null]);
    expect(JSON.parse(deleted[0]?.body ?? '')).toMatchObject({
      event_id: deleted[0]?.event_id,
      timestamp: deleted[0]?.timestamp,
      sandbox_id: plain.sandbox_id,
      payload: { reason: 'api', actor: 'tok_1' },
    });
    // The very record that is delivered.
    const queued = await database.db.selectFrom('outbox').select(['event_id', 'body']).execute();
    expect(queued).toEqual([{ event_id: deleted[1]?.event_id, body: deleted[1]?.body }]);
    expect(await told(parts, 'team_2')).toEqual([]);
  });

  it('takes later what a daemon did not tell at its transition, once, and then asks no more', async () => {
    const parts = await scriptedParts(await fresh());
    const { claim, sandboxes, runtime, clock } = parts;
    runtime.tells_life = false;
    const named = await claim();
    await sandboxes.pause(named, null);
    await clock.advance(10_000);
    await runJob(parts, 'feed');
    expect(await told(parts)).toEqual([]);
    runtime.tells_life = true;
    await clock.advance(20_000);
    await runJob(parts, 'feed');
    expect(typesOf(await told(parts))).toEqual(['ready', 'paused']);
    runtime.live(named.sandbox_id, 'sandbox.resumed');
    await clock.advance(20_000);
    await runJob(parts, 'feed');
    expect(await told(parts)).toHaveLength(2);
    await sandboxes.resume(named, null);
    expect(typesOf(await told(parts))).toEqual(['ready', 'paused', 'resumed', 'resumed']);
  });

  it('takes the event of a transition that failed after it was recorded', async () => {
    const parts = await scriptedParts(await fresh());
    const { claim, sandboxes, runtime, clock } = parts;
    const named = await claim();
    runtime.fail('pause', new Error('it broke'));
    await expect(sandboxes.pause(named, null)).rejects.toThrow('it broke');
    runtime.live(named.sandbox_id, 'sandbox.paused');
    runtime.live(named.sandbox_id, 'sandbox.resumed');
    await clock.advance(5_000);
    await runJob(parts, 'feed');
    expect(typesOf(await told(parts))).toEqual(['ready', 'paused', 'resumed']);
  });

  it('reads a daemon that has much to tell a bounded part at a time, and misses nothing', async () => {
    const parts = await scriptedParts(await fresh());
    const { claim, sandboxes, runtime, clock } = parts;
    const named = await claim();
    for (let n = 0; n < 1_500; n++) runtime.live(named.sandbox_id, 'sandbox.resumed');
    await sandboxes.pause(named, null);
    const { feed } = parts;
    const all = async () => {
      const sequences: (number | null)[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = await feed.page('team_1', cursor, { limit: 400 });
        if (page.events.length === 0) return sequences;
        sequences.push(...page.events.map(({ sequence }) => sequence));
        cursor = page.next_cursor;
      }
    };
    expect(await all()).toHaveLength(1_001);
    await clock.advance(1_000);
    await runJob(parts, 'feed');
    expect(await all()).toEqual(Array.from({ length: 1_502 }, (_, i) => i + 1));
  });

  it('forgets nothing of a sandbox that is gone for 7 days, and then all of it', async () => {
    const parts = await scriptedParts(await fresh());
    const { claim, deletions, clock, database } = parts;
    const { sandbox_id } = await claim();
    await deletions.delete(sandbox_id, 'team_1', { reason: 'api', actor: null });
    await parts.operations.drained();
    await clock.advance(FEED_KEPT_MS - 1_000);
    await runJob(parts, 'feed-prune');
    await parts.housekeeping.purge(clock.wallMs(), 10);
    expect(await told(parts)).toHaveLength(3);
    expect(await database.db.selectFrom('event_positions').selectAll().execute()).toEqual([]);
    await clock.advance(2_000);
    const [{ next_cursor }] = [await parts.feed.page('team_1', undefined, { limit: 10 })];
    await runJob(parts, 'feed-prune');
    expect(await told(parts)).toEqual([]);
    // A cursor that was read stays good, also where nothing before it is left.
    expect((await parts.feed.page('team_1', next_cursor, { limit: 10 })).events).toEqual([]);
  });

  it('keeps the last events of a team, and takes nothing from another one', async () => {
    const parts = await scriptedParts(await fresh());
    const { database, clock, runtime, services } = parts;
    const lines: object[] = [];
    const log = { ...SILENT, warn: (fields: object) => lines.push(fields) } as unknown as Log;
    const feed = await Feed.open({
      ...{ database, clock: services.clock, log, runtime },
      seal: SEAL,
      kept: 700,
    });
    const others = await parts.claim();
    const add = (sandbox_id: string, team_id: string, count: number) => {
      const events = Array.from({ length: count }, () => runtime.live(sandbox_id, 'sandbox.paused'));
      return database.db
        .transaction()
        .execute((tx) => feed.store(tx, { sandbox_id, team_id }, { events, is_complete: true }));
    };
    const prune = feed.jobs().find(({ name }) => name === 'feed-prune');
    await add('sbx_2', 'team_2', 701);
    await add('sbx_2', 'team_2', 1_100);
    // More than are removed at once.
    expect(await prune?.run()).toBe(0);
    expect(await prune?.run()).toBeGreaterThan(0);
    const kept = await feed.page('team_2', undefined, { limit: 1_000 });
    expect(kept.events.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: 700 }, (_, place) => 1_102 + place),
    );
    expect(await told(parts)).toEqual([expect.objectContaining({ sandbox_id: others.sandbox_id })]);
    expect(lines).toEqual([1_000, 101].map((pruned) => ({ team_id: 'team_2', pruned, kept: 700 })));
    await clock.advance(1_000);
    await add('sbx_2', 'team_2', 3);
    await prune?.run();
    expect((await feed.page('team_2', undefined, { limit: 1_000 })).events).toHaveLength(703);
  });

  it('shows one kind, or one sandbox, on pages of their own cursor', async () => {
    const parts = await scriptedParts(await fresh());
    const { claim, sandboxes, feed } = parts;
    const [one, two] = [await claim(), await claim()];
    await sandboxes.pause(two, null);
    const of = async (filter: object) =>
      (await feed.page('team_1', undefined, { limit: 9, ...filter })).events;
    expect(typesOf(await of({ sandbox_id: two.sandbox_id }))).toEqual(['ready', 'paused']);
    expect(typesOf(await of({ event_type: 'sandbox.ready' }))).toEqual(['ready', 'ready']);
    expect(await of({ event_type: 'sandbox.paused', sandbox_id: one.sandbox_id })).toEqual([]);
  });
});

describe('a daemon that lies', () => {
  it('is not asked again where it says that there is more and tells nothing', async () => {
    const parts = await scriptedParts();
    let asked = 0;
    parts.runtime.lifecycle = async () => {
      asked += 1;
      return { events: [], more: true, refused: 100 };
    };
    await parts.claim();
    expect(asked).toBe(1);
    expect(await parts.metrics.text()).toContain('sandbox_manager_feed_records_refused_total 100');
  });
});
