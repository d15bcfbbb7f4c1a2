import { statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { readUndelivered } from '../../src/outbox/sqlite/undelivered/undelivered-reader.ts';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { type SandboxdProgram, startSandboxd } from '../support/sandboxd-program.ts';

vi.setConfig({ testTimeout: 90_000 });

const DOWN = 'http://127.0.0.1:9/';
const DAY_MS = 24 * 60 * 60 * 1000;

const SECRET = 'made for this test';

function startFor(sandbox_id: string | null, url: string, state_dir?: string): Promise<SandboxdProgram> {
  const identity = sandbox_id === null ? [] : ['--sandbox-id', sandbox_id];
  const launch = state_dir === undefined ? {} : { state_dir };
  return startSandboxd(
    ['--webhook-url', url, '--webhook-secret', SECRET, '--shutdown-grace-ms', '100', ...identity],
    launch,
  );
}

async function outboxOf(daemon: SandboxdProgram): Promise<Record<string, number>> {
  return (await daemon.call('GET', '/api/v1/sandbox')).data.outbox;
}

/** What a stream of events shows from the first sequence on, until `count` have come. */
async function streamed(daemon: SandboxdProgram, count: number): Promise<number[]> {
  const gone = new AbortController();
  const response = await fetch(`${daemon.url}/api/v1/events/stream`, {
    headers: { authorization: `Bearer ${daemon.token}`, 'last-event-id': '0' },
    signal: gone.signal,
  });
  let text = '';
  const ids = () => [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (ids().length >= count) break;
  }
  gone.abort();
  return ids();
}

describe('a start under another sandbox id', () => {
  it('strands nothing: the right one delivers what was pending, and no sequence is given out twice', async () => {
    const first = await startFor('s1', DOWN);
    const { state_dir } = first;
    const published = await Promise.all([1, 2, 3, 4, 5].map((n) => first.publish(`{"n":${n}}`)));
    await first.end('SIGTERM');
    const wrong = await startFor(null, DOWN, state_dir);
    await wrong.logged(
      'the outbox holds records of another sandbox, some undelivered: they will not be sent',
    );
    expect(await outboxOf(wrong)).toMatchObject({ foreign: 7 });
    await wrong.end('SIGTERM');
    const consumer = await startConsumer();
    const back = await startFor('s1', consumer.url, state_dir);
    await back.publish('{"n":6}');
    await eventually(() => expect(consumer.of('agent.event')).toHaveLength(6), { timeout: 60_000 });
    for (const event_id of published) expect(consumer.find(event_id)).toBeDefined();
    const sequences = consumer.deliveries.map(({ event }) => event.sequence);
    expect(new Set(sequences).size).toBe(
      new Set(consumer.deliveries.map(({ event }) => event.event_id)).size,
    );
    expect(Math.max(...sequences)).toBe(9);
    expect(await streamed(back, 9)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const listed = await back.call('GET', '/api/v1/webhook/deliveries?state=foreign');
    expect(listed.data.deliveries.map(({ state }: { state: string }) => state)).toEqual([
      'foreign',
      'foreign',
    ]);
  });

  it('does not keep the right one from handing over what was pending', async () => {
    const first = await startFor('s1', DOWN);
    const { state_dir } = first;
    await first.publish('{"n":1}');
    await first.end('SIGKILL');
    const wrong = await startFor('s2', DOWN, state_dir);
    await wrong.end('SIGKILL');
    const own = { sandbox_id: 's1', team_id: '', webhook_secret: SECRET, record_key: null };
    const pages = [...readUndelivered({ ...own, state_dir }, systemClock)];
    expect(pages.flatMap(({ records }) => records.map(({ event_type }) => event_type))).toEqual([
      'sandbox.ready',
      'agent.event',
    ]);
    expect(pages.every(({ lost_records }) => lost_records === 0)).toBe(true);
  });
});

describe('a step of the wall clock', () => {
  it('expires nothing over a restart', async () => {
    const first = await startFor('s1', DOWN);
    const { state_dir } = first;
    for (const n of [1, 2, 3]) await first.publish(`{"n":${n}}`);
    await first.end('SIGKILL');
    // What a commit would have kept of a wall clock that was years behind.
    const db = new Database(join(state_dir, 'outbox.db'));
    db.prepare('UPDATE outbox SET clock_wall_ms = clock_wall_ms - ?').run(2_000 * DAY_MS);
    db.close();
    const second = await startFor('s1', DOWN, state_dir);
    await second.publish('{"n":4}');
    const detail = async () => {
      const listed = await second.call('GET', '/api/v1/webhook/deliveries?event_type=agent.event');
      return listed.data.deliveries as { event_id: string; state: string }[];
    };
    // Two attempts at the newest: whatever was overdue at the start has had its last one.
    await eventually(
      async () => {
        const [newest] = await detail();
        const { data } = await second.call('GET', `/api/v1/webhook/deliveries/${newest?.event_id}`);
        expect(data.attempts.length).toBeGreaterThanOrEqual(1);
      },
      { timeout: 60_000 },
    );
    expect((await detail()).map(({ state }) => state)).toEqual(Array(4).fill('pending'));
  });
});

describe('delivered records', () => {
  it('take at most a quarter of the bound for bytes, and their space is given back', async () => {
    const consumer = await startConsumer();
    const daemon = await startSandboxd([
      ...['--webhook-url', consumer.url, '--sandbox-id', 's1'],
      ...['--outbox-max-bytes', '20000000'],
    ]);
    const payload = `{"text":"${'x'.repeat(900_000)}"}`;
    for (let n = 0; n < 40; n++) await daemon.publish(payload);
    await eventually(
      async () => {
        const { pending, delivered = 0 } = await outboxOf(daemon);
        expect(pending).toBe(0);
        expect(delivered).toBeLessThanOrEqual(6);
        expect(statSync(join(daemon.state_dir, 'outbox.db')).size).toBeLessThan(12_000_000);
      },
      { timeout: 60_000, interval: 200 },
    );
    const listed = await daemon.call('GET', '/api/v1/webhook/deliveries?state=delivered');
    expect(listed.data.deliveries.length).toBeGreaterThanOrEqual(4);
  });
});
