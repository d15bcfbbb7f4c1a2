import { randomBytes } from 'node:crypto';
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';

const PAGE_BYTES = 4096;
const DATABASES = /^outbox(-unsalvaged-\d+)?\.db$/;

type Row = { event_id: unknown; headers: unknown; body: unknown; checksum: unknown };

/**
 * The events that a plain reading of a stopped outbox's files yields: every record that SQLite gives, by a scan or by
 * its id, and whose checksum is right. The files are copied first and stay as they are.
 */
export function plainReading(state_dir: string, scratch: string): Set<string> {
  const found = new Set<string>();
  for (const name of readdirSync(state_dir).filter((each) => DATABASES.test(each))) {
    const copy = join(scratch, 'copy.db');
    for (const suffix of ['', '-wal']) {
      rmSync(copy + suffix, { force: true });
      const path = join(state_dir, name + suffix);
      if (existsSync(path)) copyFileSync(path, copy + suffix);
    }
    for (const row of rowsOf(copy)) {
      const { headers, body, checksum } = row;
      if (typeof headers !== 'string' || typeof body !== 'string') continue;
      if (crc32(body, crc32(headers)) !== checksum) continue;
      found.add((JSON.parse(headers) as Record<string, string>)['ce-id'] ?? '');
    }
  }
  return found;
}

function rowsOf(path: string): Row[] {
  const rows: Row[] = [];
  let db: Database.Database | null = null;
  try {
    db = new Database(path);
    const all = 'SELECT id, event_id, headers, body, checksum FROM records NOT INDEXED';
    let last_id = 0;
    try {
      for (const row of db.prepare(`${all} ORDER BY id`).iterate()) {
        rows.push(row as Row);
        last_id = (row as { id: number }).id;
      }
      return rows;
    } catch {
      // From here on one by one.
    }
    const one = db.prepare(`${all} WHERE id = ?`);
    for (let id = last_id + 1, missing = 0; missing < 5_000; id++, missing++) {
      try {
        const row = one.get(id) as Row | undefined;
        if (row) rows.push(row);
        if (row) missing = 0;
      } catch {
        // This one is gone.
      }
    }
  } catch {
    // Nothing of it can be read.
  } finally {
    try {
      db?.close();
    } catch {
      // It is a copy.
    }
  }
  return rows;
}

/** Where the files of a stopped outbox still name these events, and how their deliveries stand: a line each. */
export function whereabouts(state_dir: string, events: Map<string, number>): string[] {
  const names = readdirSync(state_dir).filter((name) => /^outbox.*\.db$/.test(name));
  return names.flatMap((name) => {
    const db = new Database(join(state_dir, name));
    try {
      return [...events.keys()].map((event_id) => {
        const sql = `SELECT d.*, r.sandbox_id FROM records r NOT INDEXED LEFT JOIN deliveries d NOT INDEXED ON d.id = r.id
          WHERE r.headers LIKE '%' || ? || '%'`;
        return `${event_id} in ${name}: ${JSON.stringify(db.prepare(sql).all(event_id))}`;
      });
    } catch (error) {
      return [`${name}: ${(error as Error).message}`];
    } finally {
      db.close();
    }
  });
}

/** Changes bytes of a stopped outbox; returns what was done. */
export function spoil(state_dir: string): string {
  const kinds = [junk, junk, junk, page, page, bit, bit, header];
  const kind = kinds[Math.floor(Math.random() * kinds.length)] as (path: string) => void;
  const name = Math.random() < 0.85 ? 'outbox.db' : 'outbox.db-wal';
  const path = join(state_dir, name);
  if (!existsSync(path) || statSync(path).size < PAGE_BYTES) return 'nothing';
  kind(path);
  return `${kind.name} in ${name}`;
}

const anywhere = (path: string) => Math.floor(Math.random() * statSync(path).size);

function junk(path: string): void {
  overwrite(path, anywhere(path), randomBytes(1 + Math.floor(Math.random() * 2_000)));
}

function page(path: string): void {
  const at = Math.floor(anywhere(path) / PAGE_BYTES) * PAGE_BYTES;
  overwrite(path, at, Buffer.alloc(PAGE_BYTES, Math.random() < 0.5 ? 0 : 0xff));
}

function bit(path: string): void {
  overwrite(path, anywhere(path), Buffer.from([2 ** Math.floor(Math.random() * 8)]));
}

function header(path: string): void {
  overwrite(path, 0, randomBytes(512));
}

/** Not beyond the end. */
function overwrite(path: string, at: number, bytes: Buffer): void {
  const length = Math.min(bytes.length, statSync(path).size - at);
  const file = openSync(path, 'r+');
  writeSync(file, bytes, 0, length, at);
  closeSync(file);
}
