import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { Database } from '../../src/manager/database/database.ts';
import { DatabaseClock } from '../../src/manager/database/database-clock-store.ts';
import { OutboxStore } from '../../src/manager/outbox/outbox-store.ts';
import { eventually } from '../support/eventually.ts';
import { noticeOf, opened, SEAL } from '../support/manager/outbox.ts';
import { TrackingConsumer } from '../support/manager/tracking-consumer.ts';
import { type PostgresServer, postgresPrograms, startPostgres } from '../support/postgres.ts';

vi.setConfig({ testTimeout: 120_000 });

const WITHIN = { timeout: 90_000, interval: 50 };

let server: PostgresServer | undefined;

interface Scene {
  url: string;
  database: Database;
  consumer: TrackingConsumer;
  /** Commits deletions as another replica would; to so many endpoints in turn. */
  deleted(count: number, endpoints?: number): Promise<void>;
  states(): Promise<Record<string, number>>;
}

async function scene(): Promise<Scene> {
  const url = await (server as PostgresServer).database();
  const database = await opened(url);
  const clock = await DatabaseClock.open(database, systemClock);
  const outbox = new OutboxStore(database, clock, SEAL);
  const consumer = await TrackingConsumer.start();
  return {
    url,
    database,
    consumer,
    async deleted(count, endpoints = 1) {
      for (let i = 0; i < count; i++) {
        const webhook_url = `${consumer.url}/hook-${i % endpoints}`;
        const notice = noticeOf(Date.now(), { webhook_url, sandbox_id: `sb_${i}` });
        await database.db.transaction().execute((tx) => outbox.insertDeleted(tx, notice));
      }
    },
    async states() {
      const rows = await database.db
        .selectFrom('outbox')
        .select(['state', ({ fn }) => fn.countAll<number>().as('count')])
        .groupBy('state')
        .execute();
      return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
    },
  };
}

async function startReplica(url: string): Promise<ChildProcess> {
  const program = spawn(
    process.execPath,
    [join(import.meta.dirname, '../support/manager/replica-program.ts'), url],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  onTestFinished(async () => {
    const ended = once(program, 'exit');
    if (program.exitCode !== null || program.signalCode !== null) return;
    program.kill('SIGKILL');
    await ended;
  });
  await once(program.stdout as NodeJS.ReadableStream, 'data');
  return program;
}

describe.skipIf(postgresPrograms() === null)('replicas that share an outbox on PostgreSQL', () => {
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.stop());

  it('deliver everything to a consumer that fails half the time, no record twice at once', async () => {
    const { url, consumer, deleted, states } = await scene();
    let requests = 0;
    // From its fourth attempt on a record is taken: its backoff would be longer than the test.
    consumer.answer = ({ attempt }, respond) => {
      const fails = ++requests % 2 === 1 && attempt < 4;
      setTimeout(respond, 5, fails ? 503 : 204);
    };
    await Promise.all([startReplica(url), startReplica(url)]);
    await deleted(150, 5);
    await eventually(async () => expect(await states()).toEqual({ delivered: 150 }), WITHIN);
    expect(consumer.delivered.size).toBe(150);
    expect(consumer.overlapping).toEqual([]);
    expect(consumer.changed).toEqual([]);
    // Nothing is sent again once it was taken.
    expect(consumer.received.filter(({ status }) => status === 204)).toHaveLength(150);
  });

  it('take over from one that is killed in the middle of an attempt', async () => {
    const { url, consumer, deleted, states } = await scene();
    consumer.answer = () => {};
    const first = await startReplica(url);
    await deleted(3);
    await eventually(() => expect(consumer.received).toHaveLength(3), WITHIN);
    const second = await startReplica(url);
    consumer.answer = (_, respond) => respond(204);
    const died = once(first, 'exit');
    first.kill('SIGKILL');
    await died;
    await eventually(async () => expect(await states()).toEqual({ delivered: 3 }), WITHIN);
    expect(consumer.received).toHaveLength(6);
    expect(consumer.overlapping).toEqual([]);
    expect(consumer.changed).toEqual([]);
    expect(second.exitCode).toBeNull();
  });

  it('take over from one that is frozen past its lease, and refuse what it says afterwards', async () => {
    const { url, database, consumer, deleted, states } = await scene();
    const waiting: ((status: number) => void)[] = [];
    consumer.answer = (_, respond) => void waiting.push(respond);
    const frozen = await startReplica(url);
    await deleted(20);
    await eventually(() => expect(consumer.received).toHaveLength(16), WITHIN);
    await startReplica(url);
    frozen.kill('SIGSTOP');
    // Its answers are there when it goes on, and say something else than what will be.
    for (const respond of waiting.splice(0)) respond(410);
    consumer.answer = (_, respond) => respond(204);
    await eventually(async () => expect(await states()).toEqual({ delivered: 20 }), WITHIN);
    frozen.kill('SIGCONT');
    const [ended] = await database.db
      .selectFrom('outbox_replicas')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .execute();
    expect(ended).toEqual({ count: 1 });
    // It begins a new lease once it has found out that it has lost the old one.
    await eventually(async () => {
      expect(await database.db.selectFrom('outbox_replicas').select('owner').execute()).toHaveLength(2);
    }, WITHIN);
    expect(await states()).toEqual({ delivered: 20 });
    for (const { event_id } of consumer.received) expect(consumer.of(event_id).length).toBeLessThanOrEqual(2);
    expect(consumer.received).toHaveLength(36);
    expect(consumer.changed).toEqual([]);
    const attempts = await database.db.selectFrom('outbox_attempts').select('status').execute();
    expect(attempts).toEqual(Array(20).fill({ status: 204 }));
  });

  it('send nothing twice and lose nothing when the database stands still', async () => {
    const { url, consumer, deleted, states } = await scene();
    consumer.answer = (_, respond) => void setTimeout(respond, 5, 204);
    await startReplica(url);
    await deleted(300, 3);
    await eventually(() => expect(consumer.received.length).toBeGreaterThan(50), WITHIN);
    const pid = (server as PostgresServer).pid;
    await standStill(pid, 6_000);
    await eventually(async () => expect(await states()).toEqual({ delivered: 300 }), WITHIN);
    expect(consumer.overlapping).toEqual([]);
    expect(consumer.changed).toEqual([]);
    expect(consumer.received).toHaveLength(300);
  });
});

/** Stops a server with its children for a while. */
async function standStill(pid: number, duration_ms: number): Promise<void> {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
  const all = [pid, ...children];
  for (const each of all) process.kill(each, 'SIGSTOP');
  await new Promise((resolve) => setTimeout(resolve, duration_ms));
  for (const each of all) process.kill(each, 'SIGCONT');
}
