import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { readUndelivered } from '../../../../src/outbox/sqlite/undelivered/undelivered-reader.ts';
import type {
  UndeliveredPage,
  UndeliveredRecord,
} from '../../../../src/outbox/sqlite/undelivered/undelivered-record.ts';
import { type Consumer, startConsumer } from '../../../support/consumer.ts';
import { eventually } from '../../../support/eventually.ts';
import { type SandboxdProgram, startSandboxd } from '../../../support/sandboxd-program.ts';
import { scratchFolder } from '../../../support/scratch.ts';

const SECRET = 'a key made for this test';
/** Of a daemon that has no record key: its webhook's signature tells what is its own. */
const TRUST = { sandbox_id: 'sbx_1', team_id: 'team', webhook_secret: SECRET, record_key: null };
const DAY_MS = 24 * 60 * 60 * 1000;

/** A daemon whose consumer takes nothing. */
async function start(consumer: Consumer, ...args: string[]): Promise<SandboxdProgram> {
  const given = [
    '--webhook-url',
    consumer.url,
    '--webhook-secret',
    SECRET,
    '--sandbox-id',
    'sbx_1',
    '--team-id',
    'team',
  ];
  return startSandboxd([...given, ...args]);
}

async function refusing(): Promise<Consumer> {
  const consumer = await startConsumer();
  consumer.answer = (_, response) => response.writeHead(503).end('not now');
  return consumer;
}

/** Fewer at once than a daemon takes connections: beyond that the oldest one makes room. */
const PUBLISHES_AT_ONCE = 100;

async function publish(daemon: SandboxdProgram, count: number, payload = (n: number) => `{"n":${n}}`) {
  const answers: Awaited<ReturnType<typeof daemon.publish>>[] = [];
  for (let first = 0; first < count; first += PUBLISHES_AT_ONCE) {
    const length = Math.min(PUBLISHES_AT_ONCE, count - first);
    answers.push(
      ...(await Promise.all(Array.from({ length }, (_, n) => daemon.publish(payload(first + n))))),
    );
  }
  return answers;
}

function read(
  state_dir: string,
  clock = systemClock,
): { records: UndeliveredRecord[]; lost: number; set_aside: number; trouble: string | null } {
  const pages: UndeliveredPage[] = [...readUndelivered({ ...TRUST, state_dir }, clock)];
  return {
    records: pages.flatMap(({ records }) => records),
    lost: pages.reduce((sum, { lost_records }) => sum + lost_records, 0),
    set_aside: pages.reduce((sum, page) => sum + page.set_aside, 0),
    trouble: pages.at(-1)?.trouble ?? null,
  };
}

/** Writes bytes over a part of a file. */
function overwrite(path: string, at: number, text: string): void {
  writeSync(openSync(path, 'r+'), text, at);
}

/** The pending records as the database holds them. */
function stored(state_dir: string) {
  const db = new Database(join(state_dir, 'outbox.db'), { readonly: true });
  const rows = db
    .prepare(
      "SELECT event_id, headers, body, attempts FROM records JOIN deliveries USING (id) WHERE state = 'pending' ORDER BY id",
    )
    .all();
  db.close();
  return rows as { event_id: string; headers: string; body: string; attempts: number }[];
}

/** Runs `work` while no more than so many further descriptors are to be had. */
function withDescriptors<Result>(left: number, work: () => Result): { result: Result } | { error: unknown } {
  const limit = (soft: string) => execFileSync('prlimit', [`--pid=${process.pid}`, `--nofile=${soft}:`]);
  const open = readdirSync('/proc/self/fd').map(Number);
  const soft = Math.max(...open) + 20;
  const before = /Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? '1024';
  limit(String(soft));
  const taken: number[] = [];
  try {
    try {
      for (;;) taken.push(openSync('/dev/null', 'r'));
    } catch {
      for (const file of taken.splice(0, left)) closeSync(file);
    }
    return { result: work() };
  } catch (error) {
    return { error };
  } finally {
    for (const file of taken) closeSync(file);
    limit(before);
  }
}

describe('a hand-over', () => {
  it('gives every undelivered record of a killed daemon as it was stored and sent', async () => {
    const consumer = await refusing();
    const daemon = await start(consumer);
    const ids = await publish(
      daemon,
      50,
      (n) => `{"text":"zürich ${n}", "amount":1.10, "big":12345678901234567890}`,
    );
    await eventually(() => expect(consumer.deliveries.length).toBeGreaterThan(3));
    await daemon.end('SIGKILL');
    const { records, lost, trouble } = read(daemon.state_dir);
    expect({ lost, trouble }).toEqual({ lost: 0, trouble: null });
    expect(records.map(({ event_id }) => event_id).sort()).toEqual(expect.arrayContaining([...ids].sort()));
    expect(records).toHaveLength(51);
    expect(records.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 51 }, (_, n) => n + 1));
    for (const record of records) {
      const signature = createHmac('sha256', SECRET).update(record.body).digest('hex');
      expect(record.headers['X-Service-Signature']).toBe(signature);
      expect(record.deadline_in_ms).toBeGreaterThan(DAY_MS - 60_000);
      expect(record.deadline_in_ms).toBeLessThanOrEqual(DAY_MS);
      expect(record.attempt_log).toHaveLength(record.attempts);
    }
    for (const { body, headers, event } of consumer.deliveries) {
      const record = records.find(({ event_id }) => event_id === event.event_id);
      expect(record?.body).toBe(body);
      for (const [name, value] of Object.entries(record?.headers ?? {})) {
        expect(headers[name.toLowerCase()]).toBe(value);
      }
    }
    const tried = records.filter(({ attempts }) => attempts > 0);
    expect(tried.length).toBeGreaterThan(0);
    expect(tried[0]?.attempt_log[0]).toMatchObject({
      attempt: 1,
      status: 503,
      error: null,
      response_body: 'not now',
    });
    expect(stored(daemon.state_dir)).toEqual(
      records.map(({ event_id, headers, body, attempts }) => ({
        event_id,
        headers: JSON.stringify(headers),
        body,
        attempts,
      })),
    );
    expect(read(daemon.state_dir).records.map(({ body }) => body)).toEqual(records.map(({ body }) => body));
  });

  it('counts what is left of the window and of the backoff from the moment of reading', async () => {
    const consumer = await refusing();
    const daemon = await start(consumer);
    await consumer.arrival('sandbox.ready');
    await eventually(async () => {
      const { data } = await daemon.call('GET', '/api/v1/webhook/deliveries');
      expect(data.deliveries[0].next_attempt_at).not.toBeNull();
    });
    await daemon.end('SIGKILL');
    const later = (ms: number) => {
      const { id, ms: now_ms } = systemClock.boot();
      return read(daemon.state_dir, { ...systemClock, boot: () => ({ id, ms: now_ms + ms }) });
    };
    const [ready] = later(0).records;
    const [an_hour_later] = later(3_600_000).records;
    expect((ready?.deadline_in_ms ?? 0) - (an_hour_later?.deadline_in_ms ?? 0)).toBeGreaterThan(3_599_000);
    expect(an_hour_later?.due_in_ms).toBe(0);
    expect(Number.isInteger(ready?.deadline_in_ms)).toBe(true);
    expect(later(2 * DAY_MS).records[0]?.deadline_in_ms).toBe(0);
  });

  it('leaves out what is delivered and what another sandbox left', async () => {
    const healthy = await startConsumer();
    const parent = await startSandboxd(['--webhook-url', (await refusing()).url, '--sandbox-id', 'sbx_0']);
    await publish(parent, 3);
    await parent.end('SIGKILL');
    const state_dir = parent.state_dir;
    expect([...readUndelivered({ ...TRUST, state_dir }, systemClock)]).toEqual([]);
    const own = ['--sandbox-id', 'sbx_1', '--team-id', 'team', '--webhook-secret', SECRET];
    const child = await startSandboxd(['--webhook-url', healthy.url, ...own], { state_dir });
    await healthy.arrival('sandbox.ready');
    healthy.answer = (_, response) => response.writeHead(500).end();
    await publish(child, 2);
    await child.end('SIGKILL');
    const { records, lost } = read(state_dir);
    expect(lost).toBe(0);
    expect(records.filter(({ event_type }) => event_type === 'agent.event')).toHaveLength(2);
    expect(records.every(({ body }) => JSON.parse(body).sandbox_id === 'sbx_1')).toBe(true);
  });

  it('is refused while a daemon has the outbox, and harms neither', async () => {
    const consumer = await refusing();
    const daemon = await start(consumer);
    expect(() => read(daemon.state_dir)).toThrow(expect.objectContaining({ code: 'conflict' }));
    await daemon.publish('{}');
    await consumer.arrival('agent.event');
  });

  it('saves what can be read of a damaged outbox and tells how much is lost', async () => {
    const daemon = await start(await refusing());
    await publish(daemon, 300, (n) => JSON.stringify({ n, filler: 'x'.repeat(2_000) }));
    await daemon.end('SIGTERM');
    const path = join(daemon.state_dir, 'outbox.db');
    const bytes = readFileSync(path);
    const at = bytes.indexOf('"n":150,');
    // A whole page of the records' tree, and one body that the disk changed.
    overwrite(path, Math.floor(at / 4096) * 4096, '\xff'.repeat(2048));
    overwrite(path, bytes.indexOf('"n":40,') + 40, 'y');
    const { records, lost, trouble } = read(daemon.state_dir);
    expect(trouble).toBeTypeOf('string');
    expect(lost).toBeGreaterThanOrEqual(2);
    expect(records.length + lost).toBe(302);
    expect(records.length).toBeGreaterThan(280);
    expect(records.map(({ event_type }) => event_type)).toContain('sandbox.killed');
    for (const { body, headers } of records) {
      expect(createHmac('sha256', SECRET).update(body).digest('hex')).toBe(headers['X-Service-Signature']);
    }
  });

  it.each([
    ['is gone', (path: string) => rmSync(path)],
    ['is empty', (path: string) => truncateSync(path)],
    [
      'is a link',
      (path: string) => {
        renameSync(path, `${path}.moved`);
        symlinkSync(`${path}.moved`, path);
      },
    ],
  ])('tells how many records are lost where the outbox %s', async (_, damage) => {
    const daemon = await start(await refusing());
    await publish(daemon, 5);
    await daemon.end('SIGKILL');
    rmSync(join(daemon.state_dir, 'outbox.db-wal'), { force: true });
    damage(join(daemon.state_dir, 'outbox.db'));
    const { records, lost, trouble } = read(daemon.state_dir);
    expect(records).toEqual([]);
    expect(lost).toBe(6);
    expect(trouble).toBeTypeOf('string');
  });

  it('gives every record where only the beginning of the outbox is something else', async () => {
    const daemon = await start(await refusing());
    const ids = await publish(daemon, 5);
    await daemon.end('SIGTERM');
    overwrite(join(daemon.state_dir, 'outbox.db'), 0, 'no database');
    for (const _ of ['once', 'and again']) {
      const { records, lost } = read(daemon.state_dir);
      expect(lost).toBe(0);
      expect(records.map(({ event_id }) => event_id)).toEqual(expect.arrayContaining(ids));
      expect(records).toHaveLength(7);
    }
  });

  it('keeps the trace of a publish, and sets a record aside whose trace no daemon has stored', async () => {
    const daemon = await start(await refusing());
    const [planted] = await publish(daemon, 1);
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await fetch(`${daemon.url}/api/v1/webhook/publish`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent },
      body: '{"payload":{}}',
    });
    await daemon.end('SIGKILL');
    const db = new Database(join(daemon.state_dir, 'outbox.db'));
    db.function('crc32', (headers, body) => crc32(String(body), crc32(String(headers))));
    db.prepare(
      "UPDATE records SET headers = json_set(headers, '$.traceparent', 'of my own') WHERE event_id = ?",
    ).run(planted);
    db.prepare('UPDATE records SET checksum = crc32(headers, body) WHERE event_id = ?').run(planted);
    db.close();
    const { records, set_aside } = read(daemon.state_dir);
    expect(records.map(({ headers }) => headers.traceparent)).toEqual([undefined, traceparent]);
    expect(set_aside).toBe(1);
  });

  it('trusts neither tables, headers nor journals that a process of the sandbox has put there', async () => {
    const daemon = await start(await refusing());
    await publish(daemon, 3);
    await daemon.end('SIGTERM');
    const path = join(daemon.state_dir, 'outbox.db');
    const victim = join(scratchFolder(), 'victim');
    writeSync(openSync(victim, 'w'), 'here');
    writeSync(openSync(`${path}-journal`, 'w'), victim);
    const db = new Database(path);
    db.unsafeMode();
    db.function('crc32', (text, before) => crc32(String(text), Number(before)));
    const planted = '{"Host":"elsewhere","Authorization":"Bearer stolen"}';
    db.prepare(
      `UPDATE records SET headers = ?, checksum = crc32(body, crc32(?, 0)) WHERE event_type = 'sandbox.ready'`,
    ).run(planted, planted);
    db.close();
    const { records, lost, set_aside } = read(daemon.state_dir);
    expect(records).toHaveLength(4);
    expect({ lost, set_aside }).toEqual({ lost: 0, set_aside: 1 });
    expect(JSON.stringify(records)).not.toContain('stolen');
    expect(statSync(victim).size).toBe(4);
    const again = new Database(path);
    again.exec(`ALTER TABLE attempts RENAME TO a; CREATE VIEW attempts AS
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n`);
    again.close();
    const anew = read(daemon.state_dir);
    expect(anew.records.map(({ event_id }) => event_id)).toEqual(records.map(({ event_id }) => event_id));
    expect(anew.lost).toBe(1);
  });

  it('takes no error that may pass for damage: with too few descriptors it throws, and then gives everything', async () => {
    const daemon = await start(await refusing());
    const ids = await publish(daemon, 5);
    await daemon.end('SIGKILL');
    let thrown = 0;
    for (let left = 0; left < 12; left++) {
      const made = withDescriptors(left, () => read(daemon.state_dir));
      if ('error' in made) {
        expect(made.error).toMatchObject({
          code: expect.stringMatching(/^(EMFILE|SQLITE_CANTOPEN|conflict)/),
        });
        thrown += 1;
      } else expect(made.result).toMatchObject({ lost: 0, records: { length: 6 } });
    }
    expect(thrown).toBeGreaterThan(0);
    const { records, lost } = read(daemon.state_dir);
    expect(lost).toBe(0);
    expect(records.map(({ event_id }) => event_id)).toEqual(expect.arrayContaining(ids));
  });

  it('gives the records of an outbox that was set aside and not yet taken over', async () => {
    const daemon = await start(await refusing());
    const ids = await publish(daemon, 50);
    await daemon.end('SIGTERM');
    for (const suffix of ['', '-wal']) {
      const path = join(daemon.state_dir, `outbox.db${suffix}`);
      if (statSync(path, { throwIfNoEntry: false })) {
        renameSync(path, join(daemon.state_dir, `outbox-unsalvaged-1.db${suffix}`));
      }
    }
    const { records, lost } = read(daemon.state_dir);
    expect(lost).toBe(0);
    expect(records.map(({ event_id }) => event_id)).toEqual(expect.arrayContaining(ids));
    expect(new Set(records.map(({ event_id }) => event_id)).size).toBe(52);
  });

  it('gives a record whose delivery is damaged as one that was never tried', async () => {
    const daemon = await start(await refusing());
    const ids = await publish(daemon, 5);
    await daemon.end('SIGTERM');
    const db = new Database(join(daemon.state_dir, 'outbox.db'));
    db.exec(
      "UPDATE deliveries SET attempts = 1.5, state = 'pending' WHERE id = 3; DELETE FROM deliveries WHERE id = 4",
    );
    db.close();
    const { records, lost } = read(daemon.state_dir);
    expect(lost).toBe(0);
    expect(records.map(({ event_id }) => event_id)).toEqual(expect.arrayContaining(ids));
  });

  it('gives nothing where there was never an outbox', () => {
    expect(read(join(scratchFolder(), 'state'))).toEqual({
      records: [],
      lost: 0,
      set_aside: 0,
      trouble: null,
    });
  });
});
