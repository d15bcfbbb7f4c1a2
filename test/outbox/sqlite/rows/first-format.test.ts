import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { readUndelivered } from '../../../../src/outbox/sqlite/undelivered/undelivered-reader.ts';
import { draft, openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { scratchFolder } from '../../../support/scratch.ts';

/**
 * An outbox of the first format, as a daemon left it: sb-1 had a delivered, a failed and a pending record when the
 * daemon was started for sb-2, and back; that left two pending ones, and sb-1 began anew with one more.
 */
function firstFormat(): string {
  const state_dir = scratchFolder();
  const db = new Database(join(state_dir, 'outbox.db'));
  db.exec(readFileSync(join(import.meta.dirname, '../../../support/outbox/format-1.sql'), 'utf8'));
  db.close();
  return state_dir;
}

const at = () => new ManualClock(Date.UTC(2026, 10, 22, 12));

describe('an outbox of the first format', () => {
  it('has the same tables and indexes as a new one, once it is opened', () => {
    const migrated = openRows(at(), { state_dir: firstFormat() }).db;
    const schema = 'SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name';
    const fresh = openRows(at()).db.prepare(schema).all();
    expect(migrated.prepare(schema).all()).toEqual(fresh);
    expect(migrated.pragma('user_version', { simple: true })).toBe(3);
    expect(migrated.pragma('integrity_check', { simple: true })).toBe('ok');
  });

  it('is opened with all it holds: what was stranded as foreign is as it was, and no sequence comes again', () => {
    const { rows } = openRows(at(), { state_dir: firstFormat(), sandbox_id: 'sb-1' });
    expect(rows.counts()).toMatchObject({ pending: 2, delivered: 5, failed: 1, expired: 0, foreign: 2 });
    expect(rows.backlog.due(10).records.map(({ body }) => JSON.parse(body).payload)).toMatchObject([
      { n: 3 },
      { n: 6 },
    ]);
    rows.begin();
    const appended = rows.added.append({ drafts: [draft()] });
    rows.commit();
    expect(appended).toMatchObject({ outcome: 'committed', records: [{ sequence: 5 }] });
  });

  it('gives the other sandbox its own back', () => {
    const { rows } = openRows(at(), { state_dir: firstFormat(), sandbox_id: 'sb-2' });
    expect(rows.counts()).toMatchObject({ pending: 2, delivered: 0, foreign: 8 });
    rows.begin();
    expect(rows.added.append({ drafts: [draft()] })).toMatchObject({ records: [{ sequence: 3 }] });
    rows.commit();
  });

  it('is handed over as it is', () => {
    const own = { sandbox_id: 'sb-1', team_id: 't', webhook_secret: 'made for this test', record_key: null };
    const pages = [...readUndelivered({ ...own, state_dir: firstFormat() }, systemClock)];
    expect(pages.flatMap(({ records }) => records)).toMatchObject([{ sequence: 3, attempts: 2 }]);
    expect(pages.every(({ lost_records }) => lost_records === 0)).toBe(true);
  });
});
