import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { OutboxClient } from '../../../../src/outbox/sqlite/client.ts';
import { prepareStateDir } from '../../../../src/outbox/sqlite/files/state-files.ts';
import { draft } from '../../../support/in-process-store.ts';
import { scratchFolder } from '../../../support/scratch.ts';

const LIMITS = { max_bytes: 2 ** 30, max_records: 100_000, window_ms: 24 * 60 * 60 * 1000 };

describe('the state directory', () => {
  it('is made with all that leads to it, for its owner alone', () => {
    const state_dir = join(scratchFolder(), 'var', 'lib', 'sandboxd');
    prepareStateDir(state_dir);
    expect(statSync(state_dir).mode & 0o777).toBe(0o700);
  });

  it('is refused below a file, with the reason', () => {
    const file = join(scratchFolder(), 'file');
    writeFileSync(file, '');
    expect(() => prepareStateDir(join(file, 'state'))).toThrow(
      /^state directory .*: not a directory; choose another one with --state-dir$/,
    );
  });
});

let filled: Promise<string> | null = null;

/** A stopped outbox with three pending records. */
async function stopped(): Promise<string> {
  filled ??= fill(mkdtempSync(join(tmpdir(), 'sandboxd-state-')));
  const state_dir = join(scratchFolder(), 'state');
  cpSync(await filled, state_dir, { recursive: true });
  chmodSync(state_dir, 0o700);
  return state_dir;
}

async function fill(state_dir: string): Promise<string> {
  const store = await open(state_dir);
  for (let n = 0; n < 3; n++) await store.append({ drafts: [draft()] });
  await store.close();
  return state_dir;
}

afterAll(async () => {
  const folder = await filled;
  if (folder !== null) rmSync(folder, { recursive: true });
});

async function open(state_dir: string): Promise<OutboxClient> {
  const store = await OutboxClient.open({ state_dir, limits: LIMITS }, systemClock, () => {}, true);
  onTestFinished(() => store.close());
  await store.adopt({ sandbox_id: 'sb-1', team_id: 't', secret: '' });
  return store;
}

const ODD: [kind: string, make: (path: string, outside: string) => void][] = [
  ['a folder', (path) => mkdirSync(path)],
  ['a pipe', (path) => execFileSync('mkfifo', [path])],
  ['a link', (path, outside) => symlinkSync(outside, path)],
];
const OWN = ['outbox.db', 'outbox.db-wal', 'outbox.db-shm', 'outbox.db-journal', 'high-water', 'lock'];
const BESIDE = [
  'outbox.db.new',
  'outbox-restored.db',
  'outbox-damaged-1.db',
  'outbox-damaged-1.db-wal',
  'outbox-unsalvaged-1.db',
  'outbox-unsalvaged-1.db-wal',
  'outbox-unsalvaged-999999999.db',
];

describe.each(ODD)('%s in the state directory', (_, make) => {
  it.each(OWN)('is refused as %s, with its path, and no link is followed', async (name) => {
    const state_dir = await stopped();
    const outside = join(scratchFolder(), 'outside');
    writeFileSync(outside, 'not to be touched');
    const path = join(state_dir, name);
    rmSync(path, { force: true });
    make(path, outside);
    await expect(open(state_dir)).rejects.toThrow(`${path} is not a regular file (links are refused)`);
    expect(readFileSync(outside, 'utf8')).toBe('not to be touched');
  });

  it('is no obstacle under a name beside the outbox, and no link is followed', async () => {
    const state_dir = await stopped();
    const outside = join(scratchFolder(), 'outside');
    writeFileSync(outside, 'not to be touched');
    for (const name of BESIDE) make(join(state_dir, name), outside);
    writeFileSync(join(state_dir, 'outbox.db'), 'junk', { flag: 'r+' });
    const store = await open(state_dir);
    expect(store.counts().pending).toBe(3);
    rmSync(join(state_dir, 'outbox.db'));
    expect(await store.append({ drafts: [draft()] })).toMatchObject({ outcome: 'committed' });
    await store.close();
    expect((await open(state_dir)).counts().pending).toBe(4);
    expect(readFileSync(outside, 'utf8')).toBe('not to be touched');
  });
});

describe('a file of the outbox', () => {
  it('that can only be read is made its owner to write', async () => {
    const state_dir = await stopped();
    for (const name of ['outbox.db', 'high-water', 'lock']) chmodSync(join(state_dir, name), 0o400);
    expect((await open(state_dir)).counts().pending).toBe(3);
    expect(statSync(join(state_dir, 'outbox.db')).mode & 0o777).toBe(0o600);
  });
});
