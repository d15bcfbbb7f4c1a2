import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { OutboxClient } from '../../../../src/outbox/sqlite/client.ts';
import type { Mended } from '../../../../src/outbox/sqlite/messages.ts';
import type { Adoption, AppendResult, LoadedRecord } from '../../../../src/outbox/store.ts';
import { draft } from '../../../support/in-process-store.ts';
import { delivered } from '../../../support/outbox/writer.ts';
import { scratchFolder } from '../../../support/scratch.ts';

const LIMITS = { max_bytes: 2 ** 30, max_records: 100_000, window_ms: 24 * 60 * 60 * 1000 };
const PAGE_BYTES = 4096;

interface Opened {
  store: OutboxClient;
  adoption: Adoption;
  mended: Mended[];
}

/** The outbox in a thread of its own, as a daemon has it. */
async function open(state_dir: string, sandbox_id = 'sb-1'): Promise<Opened> {
  const store = await OutboxClient.open({ state_dir, limits: LIMITS }, systemClock, () => {});
  onTestFinished(() => store.close());
  const mended: Mended[] = [];
  store.onMended((each) => mended.push(each));
  const adoption = await store.adopt({ sandbox_id, team_id: 't', secret: 's' });
  return { store, adoption, mended };
}

const payload = (n: number, text_bytes = 500) => `{"n":${n},"text":"${'x'.repeat(text_bytes)}"}`;

async function publish(
  store: OutboxClient,
  count: number,
  first = 0,
  text_bytes = 500,
): Promise<AppendResult[]> {
  const numbers = Array.from({ length: count }, (_, i) => first + i);
  return Promise.all(
    numbers.map((n) => store.append({ drafts: [draft(payload(n, text_bytes), `key-${n}`)] })),
  );
}

/** A stopped outbox with so many pending records, all in the database file. */
async function filled(count: number, text_bytes = 500): Promise<string> {
  const state_dir = join(scratchFolder(), 'state');
  const { store } = await open(state_dir);
  await publish(store, count, 0, text_bytes);
  await store.close();
  return state_dir;
}

/** The numbers of every record that is to be sent, each as often as it is. */
async function pendingNumbers(store: OutboxClient): Promise<number[]> {
  const records: LoadedRecord[] = [];
  for (let more = true, after_id = 0; more; after_id = records.at(-1)?.id ?? after_id) {
    const page = await store.untried(after_id, 1_000);
    records.push(...page.records);
    more = page.more;
  }
  const due = await store.due(10_000);
  return [...records, ...due.records]
    .map(({ body }) => JSON.parse(body.toString()).payload.n as number)
    .sort((a, b) => a - b);
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
const database = (state_dir: string) => join(state_dir, 'outbox.db');
const aside = (state_dir: string) => readdirSync(state_dir).filter((name) => /-\d+\.db/.test(name));

function overwrite(path: string, at: number, bytes: Buffer): void {
  const file = openSync(path, 'r+');
  writeSync(file, bytes, 0, bytes.length, at);
  closeSync(file);
}

/** Makes an index unreadable, so that the next commit that needs it meets damage: the tables are whole. */
function spoilIndex(state_dir: string, name = 'records_event_id'): void {
  const db = new Database(database(state_dir));
  const root = db.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').pluck().get(name) as number;
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
  overwrite(database(state_dir), (root - 1) * PAGE_BYTES, Buffer.alloc(PAGE_BYTES, 0xff));
}

/** Writes what no outbox would into rows, past the checks of the schema. */
function spoilRows(state_dir: string, change: string): void {
  const withSchema = (sql: string) => {
    const db = new Database(database(state_dir));
    db.unsafeMode();
    db.pragma('writable_schema = ON');
    db.exec(sql);
    db.close();
  };
  withSchema(`CREATE TABLE kept AS SELECT name, sql FROM sqlite_schema;
    UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'`);
  withSchema(change);
  withSchema(`UPDATE sqlite_schema SET sql = (SELECT sql FROM kept WHERE kept.name = sqlite_schema.name)
    WHERE name IN (SELECT name FROM kept)`);
  withSchema('DROP TABLE kept; VACUUM');
}

describe('salvage', () => {
  it('takes over every record of a database whose index is damaged, once', async () => {
    // Too large to be checked page by page at the start.
    const state_dir = await filled(1_500, 12_000);
    spoilIndex(state_dir);
    const { store, mended } = await open(state_dir);
    await publish(store, 1, 1_500);
    await publish(store, 1, 1_501);
    const found = await pendingNumbers(store);
    expect(found.filter((n) => n < 1_500)).toEqual(numbers(1_500));
    expect(mended).toMatchObject([{ how: 'replaced', lost_records: 0 }]);
    expect(store.counts().pending).toBe(found.length);
  });

  it.each([
    ['a number is missing', 'UPDATE deliveries SET attempts = NULL WHERE id = 700'],
    ['a state is none', "UPDATE deliveries SET state = 'pendinh' WHERE id = 700"],
    ['a number is text', "UPDATE deliveries SET deadline_ms = 'soon', failures = 'x' WHERE id = 700"],
    ['the window has ended before it began', 'UPDATE deliveries SET deadline_ms = 5 WHERE id = 700'],
    [
      'the next attempt is a year away',
      'UPDATE deliveries SET due_ms = due_ms + 31536000000000 WHERE id = 700',
    ],
    ['the row is gone', 'DELETE FROM deliveries WHERE id = 700'],
    [
      'its event is another',
      "UPDATE records SET event_id = 'evt_', event_type = 7, sequence = NULL WHERE id = 700",
    ],
    ['its sandbox is another', "UPDATE records SET sandbox_id = 'sb-2' WHERE id = 700"],
    ['its time is none', 'UPDATE records SET created_at_ms = NULL WHERE id = 700'],
    ["its key is another record's", 'UPDATE records SET idempotency_key = NULL WHERE id = 700'],
    ['an attempt is none', "INSERT INTO attempts VALUES (700, 'x', 'y', x'00', 'abc', 5, 6, 7, 8)"],
    ['the outbox counts nothing', "UPDATE outbox SET pending = NULL, bytes = 'many'"],
    ['the outbox has no numbers', 'DELETE FROM outbox'],
    ['the outbox begins anew', 'UPDATE outbox SET next_id = 1, next_sequence = 1'],
  ])('keeps the record and all others where %s', async (_, change) => {
    const state_dir = await filled(1_000);
    spoilRows(state_dir, change);
    spoilIndex(state_dir);
    const { store } = await open(state_dir);
    await publish(store, 3, 1_000);
    const results = await publish(store, 3, 1_003);
    expect(results.map(({ outcome }) => outcome)).toEqual(['committed', 'committed', 'committed']);
    const found = await pendingNumbers(store);
    expect(found.filter((n) => n < 1_000)).toEqual(numbers(1_000));
    const counts = store.counts();
    expect(counts.pending).toBe(found.length);
    expect(Object.values(counts).every(Number.isSafeInteger)).toBe(true);
    const sequences = results.flatMap((each) =>
      'records' in each ? each.records.map((r) => r.sequence) : [],
    );
    expect(Math.min(...sequences)).toBeGreaterThan(1_000);
    expect((await publish(store, 1, 5))[0]).toMatchObject({ outcome: 'repeated' });
  });

  it('leaves out a record that the disk changed, alone, and counts it', async () => {
    const state_dir = await filled(100);
    const bytes = readFileSync(database(state_dir));
    overwrite(database(state_dir), bytes.indexOf('"n":50,') + 20, Buffer.from('y'));
    spoilIndex(state_dir);
    const { store, adoption } = await open(state_dir);
    await publish(store, 1, 100);
    expect((await pendingNumbers(store)).filter((n) => n < 100)).toEqual(
      numbers(100).filter((n) => n !== 50),
    );
    expect(adoption).toMatchObject({ set_aside: join(state_dir, 'outbox-damaged-1.db'), lost_records: 1 });
  });

  it.each([
    ['junk where the header was', (path: string) => overwrite(path, 0, Buffer.alloc(512, 'junk'))],
    ['junk in the whole first page', (path: string) => overwrite(path, 0, Buffer.alloc(PAGE_BYTES, 'junk'))],
    ['a header that names another program', (path: string) => overwrite(path, 60, Buffer.from([0, 0, 0, 0]))],
    [
      'a schema with another name',
      (path: string) => overwrite(path, readFileSync(path).indexOf('checksum INTEGER'), Buffer.from('C')),
    ],
  ])('takes over every record where the database has %s, and keeps it as it was found', async (_, spoil) => {
    const state_dir = await filled(300);
    spoil(database(state_dir));
    const found = readFileSync(database(state_dir));
    const { store, adoption } = await open(state_dir);
    expect(await pendingNumbers(store)).toEqual(numbers(300));
    expect(adoption).toMatchObject({ missing_records: 0, lost_records: 0 });
    expect(adoption.set_aside).toBe(join(state_dir, 'outbox-damaged-1.db'));
    // A database that SQLite opened has another change counter.
    const kept = readFileSync(adoption.set_aside as string);
    expect(kept.subarray(100).equals(found.subarray(100))).toBe(true);
    const [next] = await publish(store, 1, 300);
    expect(next).toMatchObject({ records: [{ sequence: 301 }] });
    expect((await publish(store, 1, 7))[0]).toMatchObject({ outcome: 'repeated' });
    await store.close();
    expect((await open(state_dir)).adoption).toMatchObject({ missing_records: 0, set_aside: null });
  });
});

describe('a salvage that a death came before', () => {
  const setAside = (state_dir: string, number = 1) =>
    renameSync(database(state_dir), join(state_dir, `outbox-unsalvaged-${number}.db`));

  it.each([
    ['its database was set aside', () => {}],
    ['the new database was made', (state_dir: string) => new Database(database(state_dir)).close()],
    ['the mark was lost, too', (state_dir: string) => rmSync(join(state_dir, 'high-water'))],
  ])('is made by the next start, when %s', async (_, more) => {
    const state_dir = await filled(300);
    setAside(state_dir);
    more(state_dir);
    const { store, adoption } = await open(state_dir);
    expect(await pendingNumbers(store)).toEqual(numbers(300));
    expect(adoption).toMatchObject({ lost_records: 0, missing_records: 0, foreign_records: 0 });
    expect(aside(state_dir)).toEqual(['outbox-damaged-1.db']);
    const [next] = await publish(store, 1, 300);
    expect(next).toMatchObject({ records: [{ sequence: 301 }] });
    expect((await publish(store, 1, 7))[0]).toMatchObject({ outcome: 'repeated' });
  });

  it('is not repeated where it was committed and only its name is the old one', async () => {
    const state_dir = await filled(300);
    setAside(state_dir);
    const first = await open(state_dir);
    const ids = (await first.store.untried(0, 10)).records;
    for (const { id } of ids) {
      await first.store.record(delivered(id));
    }
    await first.store.close();
    // What was delivered is gone by now.
    const db = new Database(database(state_dir));
    db.exec(
      'DELETE FROM records WHERE id <= 10; DELETE FROM deliveries WHERE id <= 10; UPDATE outbox SET delivered = 0',
    );
    db.close();
    renameSync(join(state_dir, 'outbox-damaged-1.db'), join(state_dir, 'outbox-unsalvaged-1.db'));
    const { store, adoption } = await open(state_dir);
    expect(await pendingNumbers(store)).toEqual(numbers(300).slice(10));
    expect(adoption.set_aside).toBeNull();
    expect(aside(state_dir)).toEqual(['outbox-damaged-1.db']);
  });

  it('takes over several damaged outboxes, and what is in more than one of them once, as the newest has it', async () => {
    const state_dir = await filled(300);
    const older = readFileSync(database(state_dir));
    const first = await open(state_dir);
    await publish(first.store, 100, 300);
    const [record] = (await first.store.untried(0, 1)).records;
    await first.store.record({
      id: record?.id ?? 0,
      attempt: 1,
      started_at_ms: 0,
      duration_ms: 1,
      status: 200,
      error: null,
      error_detail: 'kept, too',
      response_body: null,
      decision: { state: 'delivered' },
    });
    await first.store.close();
    setAside(state_dir, 2);
    overwriteWhole(join(state_dir, 'outbox-unsalvaged-1.db'), older);
    const { store, adoption } = await open(state_dir);
    expect(await pendingNumbers(store)).toEqual(numbers(400).slice(1));
    expect(store.counts()).toMatchObject({ pending: 399, delivered: 1 });
    const detail = await store.find(record?.event_id ?? '');
    expect(detail?.attempts).toMatchObject([{ status: 200, error_detail: 'kept, too' }]);
    expect(adoption).toMatchObject({ lost_records: 0, missing_records: 0 });
    expect(aside(state_dir).sort()).toEqual(['outbox-damaged-1.db', 'outbox-damaged-2.db']);
  });

  it('finds the log whose database was set aside already', async () => {
    const state_dir = await filled(100);
    const db = new Database(database(state_dir));
    db.pragma('wal_autocheckpoint = 0');
    db.exec("UPDATE records SET idempotency_key = 'in the log' WHERE id = 100");
    const log = readFileSync(`${database(state_dir)}-wal`);
    db.close();
    // The log of before that close, beside a database that is aside.
    overwriteWhole(`${database(state_dir)}-wal`, log);
    setAside(state_dir);
    const { store } = await open(state_dir);
    expect(await pendingNumbers(store)).toEqual(numbers(100));
    expect(aside(state_dir).sort()).toEqual(['outbox-damaged-1.db', 'outbox-damaged-1.db-wal']);
    const again = await store.append({ drafts: [draft(payload(99), 'in the log')] });
    expect(again).toMatchObject({ outcome: 'repeated' });
  });

  it('reads nothing through a link, and nothing from a folder, that has such a name', async () => {
    const state_dir = await filled(10);
    const elsewhere = await filled(20);
    symlinkSync(database(elsewhere), join(state_dir, 'outbox-unsalvaged-1.db'));
    mkdirSync(join(state_dir, 'outbox-unsalvaged-2.db'));
    const { store } = await open(state_dir);
    expect(await pendingNumbers(store)).toEqual(numbers(10));
  });

  it("makes another sandbox's records foreign, as a start without damage does", async () => {
    const state_dir = await filled(30);
    setAside(state_dir);
    const { store, adoption } = await open(state_dir, 'sb-2');
    expect(adoption.foreign_records).toBe(30);
    expect(await pendingNumbers(store)).toEqual([]);
    expect((await publish(store, 1))[0]).toMatchObject({ outcome: 'committed', records: [{ sequence: 1 }] });
  });
});

function overwriteWhole(path: string, bytes: Buffer): void {
  writeFileSync(path, bytes, { mode: 0o600 });
}
