import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { openOutboxDatabase } from '../../../../src/outbox/sqlite/files/database-file.ts';
import {
  ATTEMPT_COLUMNS,
  emptyOutbox,
  hasOwnSchema,
  otherFormat,
  prepareDatabase,
} from '../../../../src/outbox/sqlite/rows/schema.ts';
import { readUndelivered } from '../../../../src/outbox/sqlite/undelivered/undelivered-reader.ts';
import { openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { append } from '../../../support/outbox/rows.ts';
import { scratchFolder } from '../../../support/scratch.ts';

const FORMAT = 4;
/** Every format below the present one. */
const EARLIER = Array.from({ length: FORMAT - 1 }, (_, i) => i + 1);
const TRUST = { sandbox_id: 'sb-1', webhook_secret: 'made for this test', record_key: null };
/** Whose outbox the kept one of each format is. */
const TEAMS = ['t', 'team-1'];

/** A state directory with the outbox of a format: each one that was ever written is kept as SQL. */
function leftBehind(format: number): string {
  const state_dir = scratchFolder();
  const db = new Sqlite(join(state_dir, 'outbox.db'));
  db.exec(readFileSync(join(import.meta.dirname, `../../../support/outbox/format-${format}.sql`), 'utf8'));
  db.close();
  return state_dir;
}

function contents(state_dir: string) {
  const db = new Sqlite(join(state_dir, 'outbox.db'));
  const of = (sql: string) => db.prepare(sql).pluck().get();
  const held = {
    format: db.pragma('user_version', { simple: true }),
    schema: db.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY name').all(),
    records: of('SELECT count(*) FROM records'),
    attempts: of('SELECT count(*) FROM attempts'),
    row: db.prepare('SELECT * FROM outbox').all(),
  };
  db.close();
  return held;
}

function open(path = `${scratchFolder()}/outbox.db`): Database {
  const db = new Sqlite(path);
  onTestFinished(() => void db.close());
  return db;
}

describe('a database that was set up', () => {
  it('has the tables of an outbox, in the current format, and one owner with a sync at each commit', () => {
    const db = open();
    expect(hasOwnSchema(db)).toBe(false);
    prepareDatabase(db);
    expect([hasOwnSchema(db), otherFormat(db)]).toEqual([true, null]);
    const pragma = (name: string) => db.pragma(name, { simple: true });
    expect(pragma('user_version')).toBe(FORMAT);
    expect(
      ['journal_mode', 'synchronous', 'locking_mode', 'auto_vacuum', 'wal_autocheckpoint'].map(pragma),
    ).toEqual(['wal', 2, 'exclusive', 2, 0]);
    expect(db.prepare('SELECT number, sandbox_id, next_sequence FROM outbox').all()).toEqual([
      { number: 1, sandbox_id: null, next_sequence: 1 },
    ]);
  });

  it('stays as it is when it is set up again', () => {
    const db = open();
    prepareDatabase(db);
    db.exec("UPDATE outbox SET sandbox_id = 'sb-1', next_sequence = 7");
    prepareDatabase(db);
    expect(db.prepare('SELECT sandbox_id, next_sequence FROM outbox').all()).toEqual([
      { sandbox_id: 'sb-1', next_sequence: 7 },
    ]);
  });

  it('is what the bytes of an empty outbox are', () => {
    const path = `${scratchFolder()}/outbox.db`;
    writeFileSync(path, emptyOutbox());
    const db = open(path);
    expect([hasOwnSchema(db), otherFormat(db)]).toEqual([true, null]);
    const pragma = (name: string) => db.pragma(name, { simple: true });
    expect(['journal_mode', 'auto_vacuum', 'quick_check'].map(pragma)).toEqual(['wal', 2, 'ok']);
    const made = open();
    prepareDatabase(made);
    const rows = (each: Database) => each.prepare('SELECT * FROM outbox').all();
    expect(rows(db)).toEqual(rows(made));
  });

  it.each([-1, ...EARLIER, FORMAT + 1])('is refused by name where its format is %i', (format) => {
    const db = open();
    prepareDatabase(db);
    db.pragma(`user_version = ${format}`);
    expect(() => prepareDatabase(db)).toThrow(
      `the outbox has format ${format}; this version of sandboxd reads format ${FORMAT}`,
    );
    expect(hasOwnSchema(db)).toBe(false);
  });
});

/**
 * Formats that no release has had are refused. Once there is a release, its formats open: then each of these outboxes
 * is to have the tables of a new one when it is opened, with all that it holds.
 */
describe.each(EARLIER)('an outbox of format %i, as a daemon left it', (format) => {
  it('is refused by name, and stays as it is', () => {
    const state_dir = leftBehind(format);
    const held = contents(state_dir);
    expect(held.records).toBeGreaterThan(0);
    expect(() => openOutboxDatabase(state_dir)).toThrow(
      `the outbox has format ${format}; this version of sandboxd reads format ${FORMAT}`,
    );
    expect(contents(state_dir)).toEqual(held);
    expect(held.format).toBe(format);
  });

  it('is no outbox in the present format', () => {
    expect(hasOwnSchema(open(join(leftBehind(format), 'outbox.db')))).toBe(false);
  });

  it('is read in a handover as a damaged one is, which says its format where records are missing', () => {
    const state_dir = leftBehind(format);
    writeFileSync(
      join(state_dir, 'high-water'),
      `${'99'.padStart(16, '0')} ${'50'.padStart(16, '0')} sb-1\n`,
    );
    const team_id = TEAMS[format - 1] as string;
    const pages = [...readUndelivered({ ...TRUST, team_id, state_dir }, systemClock)];
    const read = pages.flatMap(({ records }) => records.map(({ sequence }) => sequence));
    expect(pages.at(-1)).toMatchObject({
      lost_records: 50 - read.length,
      trouble: `the outbox has format ${format}; this version of sandboxd reads format ${FORMAT}`,
    });
  });
});

it.each([...EARLIER, FORMAT + 1])(
  'all is handed over of an outbox whose number was changed to %i',
  (format) => {
    const state_dir = scratchFolder();
    const { rows, db } = openRows(new ManualClock(), { state_dir, secret: TRUST.webhook_secret });
    append(rows, '{}', '{}', '{}');
    db.pragma(`user_version = ${format}`);
    db.close();
    const pages = [...readUndelivered({ ...TRUST, team_id: 'team-1', state_dir }, systemClock)];
    expect(pages.flatMap(({ records }) => records.map(({ sequence }) => sequence))).toEqual([1, 2, 3]);
    expect(pages.at(-1)).toMatchObject({ lost_records: 0, trouble: null });
  },
);

describe('the columns of attempts', () => {
  it('bound what a sandbox may have written into its own outbox', () => {
    const db = open();
    prepareDatabase(db);
    const long = 'x'.repeat(5_000);
    db.prepare('INSERT INTO attempts VALUES (1, 1, 0, 0, NULL, NULL, NULL, @long, @long)').run({ long });
    const row = db.prepare(`SELECT ${ATTEMPT_COLUMNS} FROM attempts`).get() as {
      error_detail: string;
      response_body: string;
    };
    expect([row.error_detail.length, row.response_body.length]).toEqual([256, 1024]);
  });
});

describe('a schema', () => {
  it.each([
    ['a view', 'CREATE VIEW v AS SELECT 1'],
    ['a trigger', 'CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END'],
    ['a table more', 'CREATE TABLE more (id INTEGER)'],
    ['a table less', 'DROP TABLE tree'],
    ['an index less', 'DROP INDEX deliveries_due'],
    ['another column', 'ALTER TABLE tree ADD COLUMN more TEXT'],
  ])('is not the own one with %s', (_, change) => {
    const db = open();
    prepareDatabase(db);
    db.exec(change);
    expect(hasOwnSchema(db)).toBe(false);
  });
});
