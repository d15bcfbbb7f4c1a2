import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { openOutboxDatabase } from '../../../../src/outbox/sqlite/files/database-file.ts';
import { LeftOutbox } from '../../../../src/outbox/sqlite/files/left-outbox.ts';
import { prepareStateDir } from '../../../../src/outbox/sqlite/files/state-files.ts';
import { identityOf } from '../../../../src/outbox/sqlite/files/state-lock.ts';
import { scratchFolder } from '../../../support/scratch.ts';

/** A database that is open, locked, and has a commit in its log alone. */
function leave() {
  const state_dir = join(scratchFolder(), 'state');
  prepareStateDir(state_dir);
  const db = openOutboxDatabase(state_dir);
  onTestFinished(() => {
    db.close();
  });
  db.prepare("UPDATE outbox SET sandbox_id = 'sb-left'").run();
  const path = join(state_dir, 'outbox.db');
  const [database, log] = [identityOf(path), identityOf(`${path}-wal`)];
  if (!database || !log) throw new Error('it has no log');
  return { state_dir, path, db, left: new LeftOutbox(state_dir, { database, log }) };
}

const ownerIn = (path: string) => {
  const db = new Sqlite(path, { timeout: 0 });
  try {
    return db.prepare('SELECT sandbox_id FROM outbox').pluck().get();
  } finally {
    db.close();
  }
};

it('gets another file with all that was committed, which the old connection does not hold', () => {
  const { state_dir, path, left } = leave();
  expect(() => ownerIn(path)).toThrow(/locked/);
  const before = statSync(path).ino;
  left.take();
  expect(left.was_gone).toBe(false);
  expect(statSync(path)).toMatchObject({ mode: 0o100600 });
  expect(statSync(path).ino).not.toBe(before);
  expect(readdirSync(state_dir)).toEqual(['outbox.db']);
  expect(ownerIn(path)).toBe('sb-left');
});

it('does nothing the second time', () => {
  const { path, left } = leave();
  left.take();
  const { ino } = statSync(path);
  left.take();
  expect(statSync(path).ino).toBe(ino);
});

it.each(['the database', 'everything'])('is found by its descriptors where %s was removed', (what) => {
  const { state_dir, path, left } = leave();
  if (what === 'everything') rmSync(state_dir, { recursive: true });
  else rmSync(path);
  left.take();
  expect([left.was_gone, ownerIn(path)]).toEqual([true, 'sb-left']);
});

it('puts another file that has taken its place aside', () => {
  const { state_dir, path, left } = leave();
  rmSync(path);
  writeFileSync(path, 'of somebody else', { mode: 0o600 });
  left.take();
  expect([left.was_gone, ownerIn(path)]).toEqual([true, 'sb-left']);
  expect(readFileSync(join(state_dir, 'outbox-damaged-1.db'), 'utf8')).toBe('of somebody else');
});

it('loses nothing where it ends between the two names', () => {
  const { state_dir, path, left } = leave();
  const log = readFileSync(`${path}-wal`);
  left.take();
  // As if the old log had stayed: it is played into the copy, which has it already.
  writeFileSync(`${path}-wal`, log, { mode: 0o600 });
  expect(ownerIn(path)).toBe('sb-left');
  expect(existsSync(join(state_dir, 'outbox-moved.db'))).toBe(false);
});

it('can be repeated after a failure', () => {
  const { state_dir, path, left } = leave();
  const elsewhere = `${state_dir}-elsewhere`;
  renameSync(state_dir, elsewhere);
  writeFileSync(state_dir, 'in its way');
  expect(() => left.take()).toThrow();
  rmSync(state_dir);
  renameSync(elsewhere, state_dir);
  left.take();
  expect([left.was_gone, ownerIn(path)]).toEqual([false, 'sb-left']);
});
