import { writeFileSync } from 'node:fs';
import Sqlite, { type Database } from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  emptyOutbox,
  hasOwnSchema,
  ownVersion,
  prepareDatabase,
} from '../../../../src/outbox/sqlite/rows/schema.ts';
import { scratchFolder } from '../../../support/scratch.ts';

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
    expect(ownVersion(db)).toBe(3);
    const pragma = (name: string) => db.pragma(name, { simple: true });
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
    expect(ownVersion(db)).toBe(3);
    const pragma = (name: string) => db.pragma(name, { simple: true });
    expect(['journal_mode', 'auto_vacuum', 'quick_check'].map(pragma)).toEqual(['wal', 2, 'ok']);
    const made = open();
    prepareDatabase(made);
    const rows = (each: Database) => each.prepare('SELECT * FROM outbox').all();
    expect(rows(db)).toEqual(rows(made));
  });

  it.each([-1, 4])('is refused where its format is %i', (version) => {
    const db = open();
    prepareDatabase(db);
    db.pragma(`user_version = ${version}`);
    expect(() => prepareDatabase(db)).toThrow(`the outbox has format ${version}`);
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
