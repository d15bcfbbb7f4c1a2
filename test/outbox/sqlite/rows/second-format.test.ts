import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { Inspection } from '../../../../src/outbox/sqlite/rows/inspection.ts';
import { attemptColumns } from '../../../../src/outbox/sqlite/rows/second-format.ts';
import { readUndelivered } from '../../../../src/outbox/sqlite/undelivered/undelivered-reader.ts';
import { openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { change } from '../../../support/outbox/rows.ts';
import { scratchFolder } from '../../../support/scratch.ts';

/** An outbox of the second format, as a daemon left it: a delivered, a failed, a retried and an untried record. */
function secondFormat(): string {
  const state_dir = scratchFolder();
  const db = new Database(join(state_dir, 'outbox.db'));
  db.exec(readFileSync(join(import.meta.dirname, '../../../support/outbox/format-2.sql'), 'utf8'));
  db.close();
  return state_dir;
}

const at = () => new ManualClock(Date.UTC(2026, 10, 22, 12));

describe('an outbox of the second format', () => {
  it('has the same tables and indexes as a new one, once it is opened', () => {
    const migrated = openRows(at(), { state_dir: secondFormat() }).db;
    const schema = 'SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name';
    expect(migrated.prepare(schema).all()).toEqual(openRows(at()).db.prepare(schema).all());
    expect(migrated.pragma('user_version', { simple: true })).toBe(3);
    expect(migrated.pragma('integrity_check', { simple: true })).toBe('ok');
  });

  it('keeps its records and attempts; what follows says why it failed', () => {
    const { rows, db } = openRows(at(), { state_dir: secondFormat() });
    expect(rows.counts()).toMatchObject({ pending: 2, delivered: 1, failed: 1 });
    change(rows, () =>
      rows.outcomes.record([
        {
          ...{ id: 3, attempt: 2, started_at_ms: 0, duration_ms: 1, status: null, error: 'dns' },
          ...{ error_detail: 'no such host (ENOTFOUND hooks.invalid)', response_body: null },
          decision: { state: 'expired' },
        },
      ]),
    );
    const inspection = new Inspection(db, at(), () => rows);
    const views = inspection.list({ limit: 10 }).deliveries;
    expect(views.map(({ last_error, last_error_detail }) => [last_error, last_error_detail])).toEqual([
      [null, null],
      ['dns', 'no such host (ENOTFOUND hooks.invalid)'],
      [null, null],
      [null, null],
    ]);
    const attempts = inspection.find(views[1]?.event_id ?? '')?.attempts;
    expect(attempts?.map(({ error, error_detail }) => [error, error_detail])).toEqual([
      ['connect', null],
      ['dns', 'no such host (ENOTFOUND hooks.invalid)'],
    ]);
  });

  it('is handed over as it is', () => {
    const own = {
      sandbox_id: 'sb-1',
      team_id: 'team-1',
      webhook_secret: 'made for this test',
      record_key: null,
    };
    const pages = [...readUndelivered({ ...own, state_dir: secondFormat() }, systemClock)];
    expect(pages.flatMap(({ records }) => records)).toMatchObject([
      { sequence: 3, attempt_log: [{ attempt: 1, error: 'connect', error_detail: null }] },
      { sequence: 4, attempt_log: [] },
    ]);
    expect(pages.every(({ lost_records }) => lost_records === 0)).toBe(true);
  });
});

describe('the columns of attempts', () => {
  it('bound what a sandbox may have written into its own outbox', () => {
    const { db } = openRows(at(), { state_dir: secondFormat() });
    const long = 'x'.repeat(5_000);
    db.prepare('UPDATE attempts SET error_detail = ?, response_body = ?').run(long, long);
    const row = db.prepare(`SELECT ${attemptColumns(db)} FROM attempts`).get() as {
      error_detail: string;
      response_body: string;
    };
    expect([row.error_detail.length, row.response_body.length]).toEqual([256, 1024]);
  });
});
