import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../../src/base/clock.ts';
import { createHttpApp } from '../../../src/base/http/app.ts';
import { createLog } from '../../../src/base/log.ts';
import { MANAGER_ROUTES } from '../../../src/contract/routes/manager.ts';
import { feedHandlers } from '../../../src/manager/api/event-routes.ts';
import { PassedShares } from '../../../src/manager/api/team-connections.ts';
import { type Database, openDatabase } from '../../../src/manager/database/database.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { openSeal } from '../../../src/manager/database/seal.ts';
import { Feed } from '../../../src/manager/events/feed.ts';
import { followJob } from '../../../src/manager/events/jobs.ts';
import { NoRuntime } from '../../../src/runtime/no-runtime.ts';
import { RunningProgram } from '../running-program.ts';
import { serveSome } from '../serve-some.ts';
import { journalOf } from './journal-runtime.ts';

const TEAM = 'team_1';
const READ_EVERY_MS = 5;
const LEAST_LIFE_MS = 50;
const SETTLED_MS = 600_000;
/** A follower that reads nothing for so long reads nothing more. */
const STALLED_MS = 30_000;

/** What three followers came to; each count but the first two is 0 where all is well. */
export interface FeedRace {
  events: number;
  kills: number;
  missed: number;
  twice: number;
  /** Not what a daemon has recorded. */
  unknown: number;
  /** Not in the order of their sandbox. */
  out_of_order: number;
}

/** What a follower has read, in the order in which it did. */
type Read = { sandbox_id: string; event_type: string; event_id: string; body: string }[];

/**
 * Three followers read the feed while the one manager that writes it is killed at random instants and started again,
 * until there are so many events: two by pages of different sizes, one by a stream that it leaves and takes up again.
 */
export async function raceFeed(
  url: string,
  folder: string,
  events: number,
  life_max_ms: number,
): Promise<FeedRace> {
  const lives = join(folder, 'lives');
  mkdirSync(lives);
  const key_file = join(folder, 'key');
  const seal = openSeal(key_file);
  const database = await openDatabase(url);
  const log = createLog('fatal');
  const clock = await DatabaseClock.open(database, systemClock);
  const parts = { database, clock, log, runtime: new NoRuntime(), seal };
  const feed = await Feed.open(parts);
  const reading = new AbortController();
  let writer: RunningProgram | null = null;
  const write = (what: 'write' | 'settle') => {
    const program = join(import.meta.dirname, 'feed-writer.ts');
    const command = [process.execPath, program, url, lives, key_file, TEAM, what];
    writer = new RunningProgram(command, { stderr: 'inherit' });
    return writer;
  };
  const app = await served(feed);
  try {
    const reads: Read[] = [[], [], []];
    const [small, large, streamed] = reads as [Read, Read, Read];
    const followers = [
      byPages(feed, 7, small, reading.signal),
      byPages(feed, 1_000, large, reading.signal),
      byStream(app.url, streamed, reading.signal),
    ];
    let kills = 0;
    let failure: Error | null = null;
    for (const each of followers) each.catch((error: Error) => (failure = error));
    for (; (await writtenTo(database)) < events && failure === null; kills++) {
      const writing = write('write');
      // Its start is not what is to be killed: on a busy machine it would never come to anything else.
      await writing.wrote(/./).catch(() => {});
      await sleep(LEAST_LIFE_MS + Math.random() * life_max_ms);
      await writing.stop();
    }
    const settling = write('settle');
    const late = setTimeout(() => settling.kill(), SETTLED_MS);
    const { code } = await settling.exited;
    clearTimeout(late);
    if (code !== 0) throw new Error(`the last manager ended with ${code}`);
    const truth = recordedIn(lives);
    const all = truth.recorded.size + truth.gone.size;
    await readUpTo(reads, all);
    reading.abort();
    await Promise.all(followers);
    const sum: FeedRace = { events: all, kills, missed: 0, twice: 0, unknown: 0, out_of_order: 0 };
    for (const wrong of reads.map((read) => compared(read, truth))) {
      for (const name of ['missed', 'twice', 'unknown', 'out_of_order'] as const) sum[name] += wrong[name];
    }
    return sum;
  } finally {
    reading.abort();
    (writer as RunningProgram | null)?.kill();
    await app.close();
    await database.close();
  }
}

async function writtenTo({ db }: Database): Promise<number> {
  const { count } = await db
    .selectFrom('events')
    .select(db.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Resolves when each follower has read so many, or none reads on. */
async function readUpTo(reads: Read[], all: number): Promise<void> {
  let before = -1;
  for (let waited_ms = 0; reads.some((read) => read.length < all); waited_ms += READ_EVERY_MS) {
    const sum = reads.reduce((total, read) => total + read.length, 0);
    if (sum > before) waited_ms = 0;
    if (waited_ms > STALLED_MS) return;
    before = sum;
    await sleep(READ_EVERY_MS);
  }
}

async function byPages(feed: Feed, limit: number, read: Read, over: AbortSignal): Promise<void> {
  let cursor: string | undefined;
  while (!over.aborted) {
    const page = await feed.page(TEAM, cursor, { limit }).catch(() => null);
    read.push(...(page?.events ?? []));
    cursor = page?.next_cursor ?? cursor;
    if ((page?.events.length ?? 0) < limit) await sleep(READ_EVERY_MS);
  }
}

/** Reads the stream, and leaves it in the middle of whatever arrives, time and again. */
async function byStream(url: string, read: Read, over: AbortSignal): Promise<void> {
  let last = '0';
  while (!over.aborted) {
    const left = AbortSignal.any([over, AbortSignal.timeout(Math.round(200 + Math.random() * 1_500))]);
    try {
      const headers = { accept: 'text/event-stream', 'last-event-id': last };
      const response = await fetch(`${url}/api/v1/events`, { headers, signal: left });
      let text = '';
      for await (const chunk of response.body ?? []) {
        text += Buffer.from(chunk).toString();
        const messages = text.split('\n\n');
        text = messages.pop() ?? '';
        for (const message of messages) {
          const [, id, event_type, body] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(message) ?? [];
          if (id === undefined || event_type === undefined || body === undefined) continue;
          const { event_id, sandbox_id } = JSON.parse(body);
          read.push({ sandbox_id, event_type, event_id, body });
          last = id;
        }
      }
    } catch (error) {
      if (!left.aborted) throw error;
    }
  }
}

/** The feed's routes and its job, for one team. */
async function served(feed: Feed): Promise<{ url: string; close: () => Promise<void> }> {
  const app = createHttpApp(createLog('fatal'));
  app.decorateRequest('caller', null);
  app.decorateRequest('leaveShare', () => {});
  app.addHook('onRequest', async (request) => {
    request.caller = { team_id: TEAM, actor: 'tok_1', scopes: ['webhooks:read'], is_internal: false };
  });
  const parts = { feed, clock: systemClock, shares: new PassedShares() };
  await serveSome(app, MANAGER_ROUTES, feedHandlers(parts));
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const over = new AbortController();
  const { run } = followJob(feed.followers);
  const polling = (async () => {
    while (!over.signal.aborted) await sleep(await run().catch(() => 1_000));
  })();
  return {
    url,
    async close() {
      over.abort();
      await polling;
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

/** What the daemons have recorded, by event id, and which sandboxes were deleted. */
function recordedIn(lives: string) {
  const recorded = new Map<string, { body: string; sequence: number }>();
  const gone = new Set<string>();
  for (const name of readdirSync(lives)) {
    if (name.endsWith('.read')) continue;
    if (name.endsWith('.gone')) gone.add(name.slice(0, -'.gone'.length));
    for (const event of journalOf(join(lives, name))) recorded.set(event.event_id, event);
  }
  return { recorded, gone };
}

function compared(read: Read, { recorded, gone }: ReturnType<typeof recordedIn>) {
  const times = new Map<string, number>();
  const last = new Map<string, number>();
  let unknown = 0;
  let out_of_order = 0;
  for (const { event_id, event_type, sandbox_id, body } of read) {
    const key = event_type === 'sandbox.deleted' ? sandbox_id : event_id;
    times.set(key, (times.get(key) ?? 0) + 1);
    if (event_type === 'sandbox.deleted') continue;
    const truth = recorded.get(event_id);
    if (truth?.body !== body) unknown += 1;
    if ((truth?.sequence ?? 0) < (last.get(sandbox_id) ?? 0)) out_of_order += 1;
    last.set(sandbox_id, truth?.sequence ?? 0);
  }
  const keys = [...recorded.keys(), ...gone];
  return {
    missed: keys.filter((key) => !times.has(key)).length,
    twice: [...times.values()].filter((count) => count > 1).length,
    unknown: unknown + [...times.keys()].filter((key) => !recorded.has(key) && !gone.has(key)).length,
    out_of_order,
  };
}
