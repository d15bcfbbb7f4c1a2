import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fdatasyncSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileSystemOf } from '../../base/linux/filesystem.ts';
import { PAGE_BYTES } from '../../base/linux/procfs.ts';
import { reason } from '../failure.ts';
import { error, type Finding, ok, warning } from './finding.ts';

const SYNCS = 16;
/** No disk is faster: a quicker sync has left the data in memory. */
const HONEST_SYNC_MS = 0.02;
const SLOW_SYNC_MS = 100;

/** Byte offsets in the header of an SQLite file. */
const WRITE_FORMAT_AT = 18;
const LIBRARY_VERSION_AT = 96;
const HEADER_BYTES = 100;
const WAL_FORMAT = 2;

/** Checks whether the state directory is safe, durable and fast enough, and whether its outbox is intact. */
export async function checkStorage(state_dir: string): Promise<Finding[]> {
  const place = existing(state_dir);
  const findings = [checkDirectory(state_dir, place), checkPersistence(place)];
  if (findings[0]?.level !== 'error') findings.push(checkSync(place));
  return [...findings, checkDatabase(join(state_dir, 'outbox.db'))];
}

/** The directory, or its closest ancestor that exists. */
function existing(path: string): string {
  return existsSync(path) || path === '/' ? path : existing(dirname(path));
}

function checkDirectory(state_dir: string, place: string): Finding {
  const name = 'state_directory';
  try {
    accessSync(place, constants.W_OK | constants.X_OK);
  } catch (thrown) {
    return error(name, `${state_dir} is not writable: ${reason(thrown)}`);
  }
  if (place !== state_dir) return ok(name, `${state_dir} will be created in ${place}`);
  const stat = lstatSync(state_dir);
  if (!stat.isDirectory()) return error(name, `${state_dir} is not a directory (symbolic links are refused)`);
  if (stat.uid !== process.geteuid?.()) return error(name, `${state_dir} belongs to user ${stat.uid}`);
  if (stat.mode & 0o022) return error(name, `${state_dir} is writable by other users`);
  return ok(name, `${state_dir} is writable`);
}

function checkPersistence(place: string): Finding {
  const name = 'persistence';
  const { kind, name: type } = fileSystemOf(place);
  if (kind === 'memory') return error(name, `${place} is on ${type}: acknowledged events are lost on reboot`);
  if (kind === 'remote')
    return warning(name, `${place} is on ${type}: make sure that its server honours fsync`);
  const { bavail, bsize } = statfsSync(place);
  const free = `${Math.round((bavail * bsize) / 2 ** 20)} MiB free`;
  const note = type === 'overlay' ? ', as durable as its upper layer' : '';
  return ok(name, `${place} is on ${type}${note}, ${free}`);
}

function checkSync(place: string): Finding {
  const name = 'fsync';
  let median_ms: number;
  try {
    median_ms = medianSyncMs(place);
  } catch (thrown) {
    return error(name, `cannot sync a file in ${place}: ${reason(thrown)}`);
  }
  const took = `${median_ms.toPrecision(2)} ms`;
  if (median_ms < HONEST_SYNC_MS) {
    return warning(
      name,
      `a sync takes ${took}: no disk is that fast, acknowledged events may be in memory only`,
    );
  }
  if (median_ms > SLOW_SYNC_MS) return warning(name, `a sync takes ${took}: each publish waits for one`);
  return ok(name, `a sync takes ${took}`);
}

function medianSyncMs(place: string): number {
  const folder = mkdtempSync(join(place, '.doctor-'));
  try {
    const file = openSync(join(folder, 'sync'), 'wx', 0o600);
    const times = Array.from({ length: SYNCS }, (_, i) => {
      const started_ms = performance.now();
      writeSync(file, Buffer.alloc(PAGE_BYTES, i), 0, PAGE_BYTES, i * PAGE_BYTES);
      fdatasyncSync(file);
      return performance.now() - started_ms;
    });
    closeSync(file);
    return times.sort((a, b) => a - b)[SYNCS / 2] ?? 0;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Reads the file itself, because a running daemon locks the database. */
function checkDatabase(path: string): Finding {
  const name = 'sqlite';
  const header = Buffer.alloc(HEADER_BYTES);
  try {
    if (!existsSync(path)) return ok(name, 'there is no outbox yet');
    const file = openSync(path, 'r');
    const read = readSync(file, header, 0, HEADER_BYTES, 0);
    closeSync(file);
    if (read === 0) return ok(name, 'the outbox is being created');
    if (!header.toString('latin1').startsWith('SQLite format 3\0')) return error(name, `${path} is damaged`);
  } catch (thrown) {
    return warning(name, `cannot read ${path}: ${reason(thrown)}`);
  }
  const number = header.readUInt32BE(LIBRARY_VERSION_AT);
  const version = [Math.floor(number / 1e6), Math.floor(number / 1e3) % 1e3, number % 1e3].join('.');
  if (header[WRITE_FORMAT_AT] !== WAL_FORMAT) return error(name, `${path} is not in write-ahead log mode`);
  return ok(name, `${version}, with a write-ahead log, a sync at each commit`);
}
