import { inParallel } from '../../base/in-parallel.ts';
import type { Log } from '../../base/log.ts';
import type { Job } from '../../base/schedule.ts';
import { FEED_KEPT_MS } from '../../contract/defaults.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import { reasonOf } from '../database/database-errors.ts';
import type { FeedSandbox, LifecycleFeed } from '../sandboxes/ports.ts';
import type { FeedStore } from './feed-store.ts';
import type { Followers } from './followers.ts';

const CATCH_UP_MS = 1_000;
const CATCH_UP_AT_ONCE = 100;
const ASKED_AT_ONCE = 16;
/** A sandbox that could not be caught up with is left alone for this time. */
const LATER_MS = 15_000;
/** How often followers are looked for, and how long they wait for an event at most. */
const FOLLOW_MS = 200;
const PRUNE_MS = 60_000;
const PRUNE_AT_ONCE = 1_000;

/** Takes what transitions did not: of managers that died, of daemons that did not answer. */
export function catchUpJob(
  store: FeedStore,
  feed: Pick<LifecycleFeed, 'read' | 'store'>,
  clock: DatabaseClock,
  log: Log,
): Job {
  const catchUp = async (row: FeedSandbox) => {
    const { sandbox_id } = row;
    try {
      const reading = await feed.read(row);
      await store.write(async (tx) => {
        // A transition that began meanwhile reads by itself.
        if (!(await store.lockIdle(tx, sandbox_id))) return;
        await feed.store(tx, row, reading);
        if (!reading.is_complete) await store.expect(tx, sandbox_id, clock.wallMs() + LATER_MS);
      });
    } catch (error) {
      log.warn(
        { sandbox_id, reason: reasonOf(error) },
        "a sandbox's events could not be taken: they will be",
      );
    }
  };
  return {
    name: 'feed',
    async run() {
      const rows = await store.due(clock.wallMs(), CATCH_UP_AT_ONCE);
      await inParallel(rows, ASKED_AT_ONCE, catchUp);
      return CATCH_UP_MS;
    },
  };
}

/** Wakes those who follow the feed. */
export function followJob(followers: Followers): Job {
  return {
    name: 'feed-followers',
    async run() {
      return (await followers.poll()) ? 0 : FOLLOW_MS;
    },
  };
}

/** How many events were added for each team since its own were counted. */
export type AddedEvents = Map<string, number>;

/** Removes events that were kept long enough, and those of a team beyond the `kept` last ones, some at a time. */
export function pruneJob(
  store: FeedStore,
  clock: DatabaseClock,
  log: Log,
  { added, kept }: { added: AddedEvents; kept: number },
): Job {
  /** A team's events are counted only once so many may be too many: counting reads all that are kept. */
  const counted_each = kept / 100;
  const pruneTeam = async (team_id: string) => {
    const pruned = await store.pruneTeam(team_id, kept, PRUNE_AT_ONCE);
    if (pruned > 0) log.warn({ team_id, pruned, kept }, "a team's oldest events were removed from the feed");
    if (pruned < PRUNE_AT_ONCE) added.delete(team_id);
    return pruned;
  };
  return {
    name: 'feed-prune',
    async run() {
      const pruned = [await store.prune(clock.wallMs() - FEED_KEPT_MS, PRUNE_AT_ONCE)];
      for (const [team_id, count] of added) if (count >= counted_each) pruned.push(await pruneTeam(team_id));
      return pruned.includes(PRUNE_AT_ONCE) ? 0 : PRUNE_MS;
    },
  };
}
