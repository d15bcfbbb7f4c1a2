import { closeSync, copyFileSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { OutboxClient } from '../../../../src/outbox/sqlite/client.ts';
import { DamagedOutbox } from '../../../../src/outbox/sqlite/salvage/damaged-outbox.ts';
import { salvagedRecord } from '../../../../src/outbox/sqlite/salvage/salvaged-rows.ts';
import { draft } from '../../../support/in-process-store.ts';
import { scratchFolder } from '../../../support/scratch.ts';

const LIMITS = { max_bytes: 2 ** 30, max_records: 100_000, window_ms: 24 * 60 * 60 * 1000 };
const PAGE_BYTES = 4096;
const RECORDS = 300;

/** A page of the records' table, and the sequences of what is on it. */
interface Leaf {
  page: number;
  sequences: number[];
}

/** A stopped outbox, all in its database file, and the pages that its records are on. */
async function filled(distance = 1): Promise<{ path: string; leaves: Leaf[] }> {
  const state_dir = join(scratchFolder(), 'state');
  const store = await OutboxClient.open({ state_dir, limits: LIMITS }, systemClock, () => {});
  await store.adopt({ sandbox_id: 'sb-1', team_id: 't', secret: 's' });
  const appends = Array.from({ length: RECORDS }, (_, n) => store.append({ drafts: [draft(`{"n":${n}}`)] }));
  await Promise.all(appends);
  await store.close();
  const path = join(state_dir, 'outbox.db');
  if (distance > 1) spread(path, distance);
  const db = new Database(path);
  const pages = db
    .prepare(
      `SELECT pageno AS page, ncell AS cells FROM dbstat WHERE name = 'records' AND pagetype = 'leaf' ORDER BY path`,
    )
    .all() as { page: number; cells: number }[];
  db.close();
  let next = 1;
  const leaves = pages.map(({ page, cells }) => {
    const sequences = Array.from({ length: cells }, (_, i) => next + i);
    next += cells;
    return { page, sequences };
  });
  return { path, leaves };
}

/** Moves the ids of records apart, as deliveries that are kept for long leave them between those that were removed. */
function spread(path: string, distance: number): void {
  const db = new Database(path);
  db.exec(`UPDATE records SET id = -id * ${distance}; UPDATE records SET id = -id; VACUUM`);
  db.close();
}

/** The sequences of all records that are whole, of a copy that was changed, and how many ids were looked for. */
function searched(path: string, change: (copy: string) => void): { found: number[]; probes: number } {
  const copy = join(scratchFolder(), 'copy.db');
  copyFileSync(path, copy);
  change(copy);
  const outbox = DamagedOutbox.open(copy);
  const found = new Set<number>();
  for (const { record } of outbox?.records() ?? []) {
    const salvaged = salvagedRecord(record);
    if (salvaged) found.add(salvaged.sequence);
  }
  outbox?.close(copy);
  return { found: [...found].sort((a, b) => a - b), probes: outbox?.probes ?? 0 };
}

function foundAfter(path: string, change: (copy: string) => void): number[] {
  return searched(path, change).found;
}

function overwrite(path: string, at: number, bytes: Buffer): void {
  const file = openSync(path, 'r+');
  writeSync(file, bytes, 0, bytes.length, at);
  closeSync(file);
}

function wipe(path: string, page: number): void {
  overwrite(path, (page - 1) * PAGE_BYTES, Buffer.alloc(PAGE_BYTES, 0xff));
}

/** Changes the id of the first record on a page, and with it the order of the ids. */
function changeFirstId(path: string, page: number): void {
  const start = (page - 1) * PAGE_BYTES;
  const bytes = readFileSync(path);
  // Behind the record's length, which has two bytes. Source: SQLite's file format, section 1.6.
  const at = start + bytes.readUInt16BE(start + 8) + 2;
  overwrite(path, at, Buffer.from([(bytes[at] as number) ^ 0x04]));
}

describe('a damaged outbox', () => {
  it('gives every record that is not on the page that was lost, whichever that is', async () => {
    const { path, leaves } = await filled();
    expect(leaves.length).toBeGreaterThan(30);
    for (const { page, sequences } of leaves) {
      const others = leaves.flatMap((leaf) => (leaf.page === page ? [] : leaf.sequences));
      const found = foundAfter(path, (copy) => wipe(copy, page));
      expect(found, `page ${page} with ${sequences.join()}`).toEqual(others);
    }
  });

  it.each([1, 9_000])('is searched in as many steps as it has pages, with ids %i apart', async (distance) => {
    const { path, leaves } = await filled(distance);
    const kept = leaves.filter((_, i) => i % 2 === 0);
    const { found, probes } = searched(path, (copy) => {
      for (const { page } of leaves.filter((_, i) => i % 2 === 1)) wipe(copy, page);
    });
    expect(found).toEqual(kept.flatMap(({ sequences }) => sequences));
    expect(probes).toBeLessThan(100 * leaves.length);
  });

  it('gives what lies between two lost pages and has ids that are out of order', async () => {
    const { path, leaves } = await filled();
    const leaf = fc.constantFrom(...leaves);
    fc.assert(
      fc.property(leaf, leaf, leaf, (lost, lost_too, changed) => {
        fc.pre(changed.page !== lost.page && changed.page !== lost_too.page);
        const others = leaves.filter(({ page }) => page !== lost.page && page !== lost_too.page);
        const found = foundAfter(path, (copy) => {
          wipe(copy, lost.page);
          wipe(copy, lost_too.page);
          changeFirstId(copy, changed.page);
        });
        expect(found).toEqual(others.flatMap(({ sequences }) => sequences));
      }),
      { numRuns: 50 },
    );
  });
});
