import { timestamp } from '../../base/clock.ts';
import { kernelRandom } from '../../base/entropy.ts';
import type { Log } from '../../base/log.ts';
import { Counter, gauge, type Metric } from '../../base/metrics.ts';
import type { Job } from '../../base/schedule.ts';
import { FEED_KEPT_MAX } from '../../contract/defaults.ts';
import { invalidField } from '../../contract/errors.ts';
import type { FeedEventType } from '../../contract/events.ts';
import type { FeedEvent, FeedPage } from '../../contract/feed.ts';
import type { LifecycleEvent, Runtime } from '../../runtime/runtime.ts';
import { decodeCursor, encodeCursor, type Position, START } from '../database/cursor.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import { reasonOf } from '../database/database-errors.ts';
import { PositionStore } from '../database/position-store.ts';
import type { Seal } from '../database/seal.ts';
import { SettingStore } from '../database/setting-store.ts';
import type { DeletedEvent, FeedSandbox, LifecycleFeed, LifecycleReading } from '../sandboxes/ports.ts';
import { type EventRow, type FeedFilter, FeedStore } from './feed-store.ts';
import { Followers } from './followers.ts';
import { type AddedEvents, catchUpJob, followJob, pruneJob } from './jobs.ts';

/** Pages of a daemon's records read at once; a daemon that has more is read on later. */
const PAGES_AT_ONCE = 10;
/** An event that was not taken when its operation ended is looked for after this time. */
const EXPECTED_MS = 5_000;
/** A daemon that does not answer, or has more to tell, is asked again after this time. */
const AGAIN_MS = 1_000;

/** What a feed is made of. */
export interface FeedParts {
  database: Database;
  clock: DatabaseClock;
  log: Log;
  runtime: Pick<Runtime, 'lifecycle'>;
  seal: Pick<Seal, 'recordKey'>;
  /** How many events of a team are kept. */
  kept?: number;
}

/**
 * The feed of lifecycle events: what is added to it, and what its readers see. Events are added in the transactions of
 * the transitions that they tell of. Source: contract section 7, "The feed of events".
 */
export class Feed implements LifecycleFeed {
  readonly followers: Followers;
  readonly #parts: FeedParts;
  readonly #store: FeedStore;
  readonly #positions: PositionStore;
  readonly #database_id: string;
  readonly #added_of_teams: AddedEvents = new Map();
  readonly #added = new Counter('feed_events_total', 'Lifecycle events added to the feed.', ['event_type']);
  readonly #refused = new Counter(
    'feed_records_refused_total',
    "Records that a sandbox's daemon gave for the feed and had not made.",
  );

  /** Opens the feed of a database whose positions have been advanced. Errors: `unavailable`. */
  static async open(parts: FeedParts): Promise<Feed> {
    const made = kernelRandom(16).toString('hex');
    const database_id = await new SettingStore(parts.database.db).keep('database_id', made);
    return new Feed(parts, database_id);
  }

  private constructor(parts: FeedParts, database_id: string) {
    this.#parts = parts;
    this.#store = new FeedStore(parts.database);
    this.#positions = new PositionStore(parts.database);
    this.#database_id = database_id;
    this.followers = new Followers(this.#store);
  }

  /** The jobs of the feed: what was missed, who follows, and what is old. */
  jobs(): Job[] {
    const { clock, log, kept = FEED_KEPT_MAX } = this.#parts;
    return [
      catchUpJob(this.#store, this, clock, log),
      followJob(this.followers),
      pruneJob(this.#store, clock, log, { added: this.#added_of_teams, kept }),
    ];
  }

  /** The metrics of the feed, for the registry. */
  metrics(): Metric[] {
    return [
      this.#added,
      this.#refused,
      gauge('feed_followers', 'Clients that follow the feed.', () => this.followers.count),
    ];
  }

  /** See `LifecycleFeed`. */
  async expect(tx: Transaction, sandbox_id: string): Promise<void> {
    await this.#store.expect(tx, sandbox_id, this.#parts.clock.wallMs() + EXPECTED_MS);
  }

  /** See `LifecycleFeed`. */
  async read({ sandbox_id, team_id }: FeedSandbox): Promise<LifecycleReading> {
    const { runtime, seal, log } = this.#parts;
    const trust = { team_id, webhook_secret: '', record_key: seal.recordKey(sandbox_id) };
    const events: LifecycleEvent[] = [];
    try {
      let after = await this.#store.position(sandbox_id);
      for (let page = 0; page < PAGES_AT_ONCE; page++) {
        const read = await runtime.lifecycle(sandbox_id, trust, after);
        if (read === null) return { events, is_complete: false };
        if (read.refused > 0) this.#refused.add([], read.refused);
        events.push(...read.events);
        after = read.events.at(-1)?.sequence ?? after;
        if (!read.more || read.events.length === 0) return { events, is_complete: true };
      }
    } catch (error) {
      log.warn({ sandbox_id, reason: reasonOf(error) }, "a sandbox's events could not be read: they will be");
    }
    return { events, is_complete: false };
  }

  /** See `LifecycleFeed`. Errors: `unavailable`. */
  async store(
    tx: Transaction,
    { sandbox_id, team_id }: FeedSandbox,
    { events, is_complete }: LifecycleReading,
  ): Promise<void> {
    const recorded_at_ms = this.#parts.clock.wallMs();
    await this.#store.expect(tx, sandbox_id, is_complete ? null : recorded_at_ms + AGAIN_MS);
    await this.#add(
      tx,
      events.map(({ event_id, event_type, sequence, body }) => {
        return { event_id, event_type, sequence, body, sandbox_id, team_id, recorded_at_ms };
      }),
    );
    const last = events.at(-1);
    if (last) await this.#store.advance(tx, sandbox_id, last.sequence);
  }

  /** See `LifecycleFeed`. Errors: `unavailable`. */
  position(sandbox_id: string): Promise<number> {
    return this.#store.position(sandbox_id);
  }

  /** See `LifecycleFeed`. Errors: `unavailable`. */
  async deleted(tx: Transaction, { sandbox_id, team_id }: FeedSandbox, event: DeletedEvent): Promise<void> {
    const recorded_at_ms = this.#parts.clock.wallMs();
    const of_manager = { event_type: 'sandbox.deleted', sequence: null, sandbox_id, team_id, recorded_at_ms };
    await this.#add(tx, [{ ...event, ...of_manager }]);
  }

  async #add(tx: Transaction, events: Parameters<FeedStore['add']>[1]): Promise<void> {
    for (const { event_type, team_id } of await this.#store.add(tx, events)) {
      this.#added.add([event_type]);
      this.#added_of_teams.set(team_id, (this.#added_of_teams.get(team_id) ?? 0) + 1);
    }
  }

  /** A page of a team's events after a cursor. Errors: `invalid_request` (`cursor`), `unavailable`. */
  async page(team_id: string, cursor: string | undefined, filter: FeedFilter): Promise<FeedPage> {
    const after = await this.positionOf(team_id, cursor);
    const rows = await this.rows(team_id, after, filter);
    return { events: rows.map(eventOf), next_cursor: this.cursorOf(team_id, rows.at(-1) ?? after) };
  }

  /** The position of a cursor; undefined: the start. Errors: `invalid_request` (`cursor`), `unavailable`. */
  async positionOf(team_id: string, cursor: string | undefined, field = 'cursor'): Promise<Position> {
    const after = cursor === undefined ? START : decodeCursor(this.#reader(team_id), cursor);
    if (!after) throw invalidField(field, 'is damaged, or belongs to another team, feed or service');
    if (after.seq > 0 && (await this.#positions.isAhead('events', after))) {
      throw invalidField(
        field,
        'is ahead of this database, which was restored from a backup: start without a cursor',
      );
    }
    return after;
  }

  /** The position after the last event. Errors: `unavailable`. */
  end(): Promise<Position> {
    return this.#store.end();
  }

  /** A team's events after a position. Errors: `unavailable`. */
  rows(team_id: string, after: Position, filter: FeedFilter): Promise<EventRow[]> {
    return this.#store.page(team_id, after, filter);
  }

  /** The cursor of a position. */
  cursorOf(team_id: string, position: Position): string {
    return encodeCursor(this.#reader(team_id), position);
  }

  #reader(team_id: string) {
    return { team_id, database_id: this.#database_id, feed: 'events' as const };
  }
}

function eventOf({ event_id, event_type, sandbox_id, sequence, body, recorded_at_ms }: EventRow): FeedEvent {
  const { timestamp: happened_at = timestamp(recorded_at_ms) } = JSON.parse(body) as { timestamp?: string };
  return {
    event_id,
    event_type: event_type as FeedEventType,
    sandbox_id,
    sequence,
    timestamp: happened_at,
    body,
  };
}
