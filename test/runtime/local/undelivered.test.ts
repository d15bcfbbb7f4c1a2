import { createHmac } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { readUndeliveredApart } from '../../../src/outbox/sqlite/undelivered/hand-over-process.ts';
import type { UndeliveredPage } from '../../../src/outbox/sqlite/undelivered/undelivered-record.ts';
import { SandboxFiles } from '../../../src/runtime/local/sandbox-files.ts';
import { DamagedOutboxes, noteDamage, takeOutbox } from '../../../src/runtime/local/undelivered.ts';
import { newEventIds } from '../../../src/webhook/signed-event.ts';
import { startConsumer } from '../../support/consumer.ts';
import {
  Sandboxes,
  SECRET,
  spec,
  TRUST,
  undeliveredRecord,
  webhook,
} from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** An ended sandbox with some undelivered publishes; its files are as open to its processes as they were. */
async function ended(publishes = 3) {
  const sandboxes = await Sandboxes.open();
  const consumer = await startConsumer();
  consumer.answer = (_, response) => response.writeHead(503).end();
  await sandboxes.runtime.create(spec('sbx-1', webhook(consumer.url)));
  for (let n = 0; n < publishes; n++) {
    await sandboxes.ask('sbx-1', 'POST', '/webhook/publish', { payload: { n } });
  }
  await sandboxes.runtime.end('sbx-1');
  const state_dir = sandboxes.rootfs('sbx-1', 'var/lib/sandboxd');
  const change = (work: (db: Database.Database) => void) => {
    const db = new Database(join(state_dir, 'outbox.db'));
    work(db);
    db.close();
  };
  return { sandboxes, runtime: sandboxes.runtime, state_dir, change, all: publishes + 2 };
}

interface Forgery {
  sandbox_id?: string;
  event_type?: string;
  body?: (event_id: string) => object;
  headers?: (body: string, event_id: string) => object;
  mac?: (db: Database.Database) => unknown;
}

/** Adds a record and its delivery, as a process of the sandbox can that knows the format. */
function forge(db: Database.Database, given: Forgery): void {
  const [event_id] = newEventIds(1, Date.now()) as [string];
  const { sandbox_id = 'sbx-1', event_type = 'agent.event' } = given;
  const { next_id, next_sequence } = db.prepare('SELECT next_id, next_sequence FROM outbox').get() as {
    next_id: number;
    next_sequence: number;
  };
  const said = { event_id, event_type, timestamp: '2026-01-01T00:00:00.000Z', sandbox_id, team_id: 'team_1' };
  const body = JSON.stringify(given.body?.(event_id) ?? { ...said, sequence: next_sequence, payload: {} });
  const headers = JSON.stringify(given.headers?.(body, event_id) ?? { 'ce-id': event_id });
  const mac = given.mac?.(db) ?? null;
  db.prepare('INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?)').run(
    ...[next_id, event_id, event_type, sandbox_id, next_sequence, headers, body],
    ...[crc32(body, crc32(headers)), Date.now(), mac],
  );
  db.prepare(
    `INSERT INTO deliveries (id, state, size_bytes, deadline_ms, due_ms, sandbox)
      SELECT ?, 'pending', 1, ?, 0, sandbox FROM deliveries LIMIT 1`,
  ).run(next_id, Date.now() + 3_600_000);
  db.exec(
    'UPDATE outbox SET next_id = next_id + 1, next_sequence = next_sequence + 1, pending = pending + 1',
  );
}

describe('a hand-over from a sandbox whose processes wrote into its outbox', () => {
  it.each<[string, Forgery]>([
    ['that nobody has authenticated', {}],
    [
      'with the authentication of another',
      { mac: (db) => db.prepare('SELECT mac FROM records').pluck().get() },
    ],
    ['with an authentication of zeros', { mac: () => Buffer.alloc(32) }],
    ['whose authentication is a text', { mac: () => 'x'.repeat(32) }],
    ['of a kind that daemons do not make', { event_type: 'sandbox.deleted' }],
    ['of no kind', { event_type: 'made.up' }],
    ['whose body names another sandbox', { body: (event_id) => ({ event_id, sandbox_id: 'sbx-2' }) }],
    ['whose body is no JSON object', { body: () => [1] }],
    [
      'signed with a key of its own making',
      {
        headers: (body, event_id) => ({
          'X-Service-Signature': createHmac('sha256', 'guessed').update(body).digest('hex'),
          'ce-id': event_id,
        }),
      },
    ],
    [
      'with a signature that the secret has made',
      {
        headers: (body, event_id) => ({
          'X-Service-Signature': createHmac('sha256', SECRET).update(body).digest('hex'),
          'ce-id': event_id,
          'ce-type': 'agent.event',
        }),
      },
    ],
  ])('sets aside a record %s, and gives the others', async (_, forgery) => {
    const { runtime, change, all } = await ended();
    change((db) => forge(db, forgery));
    const { records, lost, set_aside } = await undeliveredRecord(runtime, 'sbx-1');
    expect({ records: records.length, lost, set_aside }).toEqual({ records: all, lost: 0, set_aside: 1 });
  });

  it('sets aside what was changed, but for a column that the authenticated headers tell as well', async () => {
    const { runtime, change, all } = await ended(6);
    change((db) => {
      const rows = db.prepare("SELECT id, body, headers FROM records WHERE event_type = 'agent.event'").all();
      const [a, b, c, d] = rows as { id: number; body: string; headers: string }[];
      const body = a?.body.replace('"n":0', '"n":9') ?? '';
      const checksum = crc32(body, crc32(a?.headers ?? ''));
      db.prepare('UPDATE records SET body = ?, checksum = ? WHERE id = ?').run(body, checksum, a?.id);
      const headers = b?.headers.replace('application/json', 'text/html') ?? '';
      db.prepare('UPDATE records SET headers = ?, checksum = ? WHERE id = ?').run(
        ...[headers, crc32(b?.body ?? '', crc32(headers)), b?.id],
      );
      db.prepare('UPDATE records SET sequence = sequence + 100 WHERE id = ?').run(c?.id);
      db.prepare('UPDATE records SET created_at_ms = created_at_ms + 1 WHERE id = ?').run(d?.id);
    });
    const { records, set_aside } = await undeliveredRecord(runtime, 'sbx-1');
    expect({ records: records.length, set_aside }).toEqual({ records: all - 3, set_aside: 3 });
    expect(records.map(({ sequence }) => sequence).every((sequence) => sequence < 100)).toBe(true);
  });

  it('brings into range what only tells how the deliveries stand', async () => {
    const { runtime, change, all } = await ended();
    change((db) => {
      db.exec(
        `UPDATE deliveries SET attempts = 3, failures = 'many', deadline_ms = 'never', probe_ms = 1e300`,
      );
      db.exec(
        `UPDATE deliveries SET due_ms = x'00' WHERE id = 2; UPDATE deliveries SET attempts = -5 WHERE id = 3`,
      );
      db.exec(`UPDATE outbox SET clock_ms = 'noon', clock_wall_ms = 9e99, pending = -7, next_id = 9e15`);
      db.exec('DELETE FROM attempts');
      const add = db.prepare('INSERT INTO attempts VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)');
      add.run(1, 1, 1, 'abc', 'unheard', 'x', 'OK\0', 'one\n\u001b[31mtwo');
      add.run(2, 8.7e15, 1, 200, null, null, null, null);
      add.run(3, 5, -1e18, 1e12, 'dns', 1e300, 'x'.repeat(5_000), 'y'.repeat(5_000));
      add.run(4_000_000_000, 5, 5, 503, null, null, null, null);
    });
    const { records, set_aside, lost } = await undeliveredRecord(runtime, 'sbx-1');
    expect({ records: records.length, set_aside, lost }).toEqual({ records: all, set_aside: 0, lost: 0 });
    expect(records[0]).toMatchObject({ attempts: 3, failures: 0 });
    expect(records[0]?.attempt_log).toEqual([
      {
        ...{ attempt: 1, started_at_ms: 1, duration_ms: 1, status: null, error: null },
        error_detail: 'one [31mtwo',
        ...{ next_attempt_at_ms: null, response_body: 'OK' },
      },
      {
        ...{ attempt: 3, started_at_ms: 5, duration_ms: 0, status: null, error: 'dns' },
        error_detail: 'y'.repeat(256),
        ...{ next_attempt_at_ms: null, response_body: 'x'.repeat(1024) },
      },
    ]);
    for (const { due_in_ms, probe_in_ms, deadline_in_ms, attempts } of records) {
      for (const number of [due_in_ms, probe_in_ms, deadline_in_ms, attempts]) {
        expect(Number.isFinite(number) && number >= 0 && number <= 24 * 3_600_000).toBe(true);
      }
    }
  });

  it('takes the signature of the webhook for a daemon that was started without a record key', async () => {
    const { runtime, change, sandboxes, all } = await ended();
    const file = join(sandboxes.data_dir, 'sbx-1', 'sandbox.json');
    const { has_record_key, ...old } = JSON.parse(readFileSync(file, 'utf8'));
    expect(has_record_key).toBe(true);
    writeFileSync(file, JSON.stringify(old));
    change((db) => {
      db.exec('UPDATE records SET mac = NULL');
      forge(db, {});
    });
    const { records, set_aside } = await undeliveredRecord(runtime, 'sbx-1');
    expect({ records: records.length, set_aside }).toEqual({ records: all, set_aside: 1 });
  });
});

describe('a hand-over of files that are not what they were', () => {
  it('follows no link and opens nothing that is not a file', async () => {
    const elsewhere = join(scratchFolder(), 'elsewhere');
    mkdirSync(elsewhere);
    const victim = join(elsewhere, 'victim.db');
    new Database(victim).exec('CREATE TABLE t (x)').close();
    const before = readFileSync(victim);
    const plants: ((state_dir: string) => void)[] = [
      (state_dir) => mkdirSync(join(state_dir, 'outbox.db'), { recursive: true }),
      (state_dir) => symlinkSync(victim, join(state_dir, 'outbox.db')),
      (state_dir) => mkdirSync(join(state_dir, 'outbox.db-journal', 'x'), { recursive: true }),
      (state_dir) => symlinkSync('/dev/zero', join(state_dir, 'high-water')),
    ];
    for (const plant of plants) {
      const { runtime, state_dir } = await ended(1);
      for (const name of ['outbox.db', 'outbox.db-wal', 'high-water']) {
        rmSync(join(state_dir, name), { force: true });
      }
      plant(state_dir);
      expect(await undeliveredRecord(runtime, 'sbx-1')).toMatchObject({ records: [] });
      await runtime.remove('sbx-1');
    }
    const { runtime, state_dir } = await ended(1);
    cpSync(state_dir, join(elsewhere, 'moved'), { recursive: true });
    rmSync(state_dir, { recursive: true });
    symlinkSync(join(elsewhere, 'moved'), state_dir);
    expect(await undeliveredRecord(runtime, 'sbx-1')).toMatchObject({ records: [] });
    await runtime.remove('sbx-1');
    expect(readdirSync(join(elsewhere, 'moved'))).toContain('outbox.db');
    expect(readFileSync(victim)).toEqual(before);
  });

  it('takes the files to where nothing of the sandbox reaches, and reads them there again', async () => {
    const { runtime, state_dir, sandboxes, all } = await ended();
    expect((await undeliveredRecord(runtime, 'sbx-1')).records).toHaveLength(all);
    expect(existsSync(join(state_dir, 'outbox.db'))).toBe(false);
    expect(existsSync(join(sandboxes.files('sbx-1').outbox, 'outbox.db'))).toBe(true);
    writeFileSync(join(state_dir, 'outbox.db'), 'another');
    expect((await undeliveredRecord(runtime, 'sbx-1')).records).toHaveLength(all);
  });

  it('ends where reading would never end', async () => {
    const { state_dir, change, sandboxes } = await ended(1);
    let root = 0;
    change((db) => {
      db.pragma('journal_mode = DELETE');
      root = db
        .prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'deliveries'")
        .pluck()
        .get() as number;
    });
    makeEndless(join(state_dir, 'outbox.db'), root);
    const taken = takeOutbox(sandboxes.files('sbx-1')) ?? '';
    const source = { ...TRUST, sandbox_id: 'sbx-1', state_dir: taken };
    const pages: UndeliveredPage[] = [];
    for await (const page of readUndeliveredApart(source, systemClock, 3_000)) pages.push(page);
    expect(pages).toMatchObject([{ records: [], trouble: 'reading it takes too long' }]);
  });
});

/** Makes a table of twelve levels whose pages all have the same child: as many rows as nobody can count. */
function makeEndless(path: string, root: number): void {
  const page_size = 4096;
  const pages = readFileSync(path).length / page_size;
  const interior = (child: number) => {
    const page = Buffer.alloc(page_size);
    const cells = 300;
    page.writeUInt8(5, 0);
    page.writeUInt16BE(cells, 3);
    page.writeUInt16BE(page_size - cells * 5, 5);
    page.writeUInt32BE(child, 8);
    for (let n = 0; n < cells; n++) {
      const at = page_size - (n + 1) * 5;
      page.writeUInt16BE(at, 12 + 2 * n);
      page.writeUInt32BE(child, at);
      page.writeUInt8(100, at + 4);
    }
    return page;
  };
  const leaf = readFileSync(path).subarray((root - 1) * page_size, root * page_size);
  const file = openSync(path, 'r+');
  for (let level = 1; level <= 12; level++) appendFileSync(path, interior(pages + level + 1));
  // No row of it is pending.
  appendFileSync(path, Buffer.from(leaf.toString('latin1').replaceAll('pending', 'foreign'), 'latin1'));
  writeSync(file, interior(pages + 1), 0, page_size, (root - 1) * page_size);
  const count = Buffer.alloc(4);
  count.writeUInt32BE(pages + 13);
  writeSync(file, count, 0, 4, 28);
}

describe('a damaged outbox', () => {
  it('is kept for a day beside the sandboxes, and told', async () => {
    const { runtime, state_dir, sandboxes } = await ended();
    rmSync(join(state_dir, 'outbox.db-wal'), { force: true });
    writeFileSync(join(state_dir, 'outbox.db'), 'no database'.repeat(4096));
    expect((await undeliveredRecord(runtime, 'sbx-1')).lost).toBe(5);
    await runtime.remove('sbx-1');
    expect(await runtime.list()).toEqual([]);
    const kept = join(sandboxes.data_dir, '.damaged-outboxes', 'sbx-1');
    expect(readFileSync(join(kept, 'outbox.db'), 'latin1').startsWith('no database')).toBe(true);
    const log = createLog('silent');
    const later = { ...systemClock, wallMs: () => Date.now() + 23 * 3_600_000 };
    new DamagedOutboxes(sandboxes.data_dir, later, log).prune();
    expect(existsSync(kept)).toBe(true);
    const next_day = { ...systemClock, wallMs: () => Date.now() + 25 * 3_600_000 };
    new DamagedOutboxes(sandboxes.data_dir, next_day, log).prune();
    expect(existsSync(kept)).toBe(false);
  });

  it('is not kept where it is larger than an outbox can be', async () => {
    const data_dir = scratchFolder();
    const files = new SandboxFiles(data_dir, 0, 'sbx-1');
    mkdirSync(join(files.directory, 'outbox'), { recursive: true });
    noteDamage(files);
    const keeper = new DamagedOutboxes(data_dir, systemClock, createLog('silent'), 1_000);
    writeFileSync(join(files.directory, 'outbox', 'outbox.db'), Buffer.alloc(100_000, 1));
    await keeper.preserve(files);
    expect(existsSync(join(data_dir, '.damaged-outboxes'))).toBe(false);
  });

  it('of a sandbox that was whole is not kept', async () => {
    const { runtime, sandboxes } = await ended();
    await undeliveredRecord(runtime, 'sbx-1');
    await runtime.remove('sbx-1');
    expect(existsSync(join(sandboxes.data_dir, '.damaged-outboxes'))).toBe(false);
  });
});
