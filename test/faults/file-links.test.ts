import {
  chownSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LocalDaemon } from '../support/daemon/local-daemon.ts';
import { scratchFolder } from '../support/scratch.ts';

const ROUNDS = 300;
const WRITER = 65_534;

it.runIf(process.getuid?.() === 0)(
  'links swapped while files are read and written lead neither into the daemon nor out of an account (root only)',
  async () => {
    const daemon = await LocalDaemon.start();
    const { state_dir } = daemon.daemon.config;
    const token = readFileSync(join(state_dir, 'control-token'), 'utf8');
    const folder = scratchFolder();
    const home = join(folder, 'home');
    const secret = join(folder, 'secret');
    mkdirSync(home);
    mkdirSync(secret, { mode: 0o700 });
    writeFileSync(join(secret, 'control-token'), 'secret');
    for (const name of ['a', 'b']) {
      mkdirSync(join(home, name));
      writeFileSync(join(home, name, 'control-token'), 'mine');
    }
    for (const path of [folder, home, join(home, 'a'), join(home, 'b')]) chownSync(path, WRITER, WRITER);
    let is_over = false;
    /** Makes `x` in turn a directory, a link to the daemon's, and a link to what the account may not enter. */
    const attack = async () => {
      for (let i = 0; !is_over; i++) {
        const next = join(home, `next-${i}`);
        symlinkSync([join(home, 'a'), state_dir, secret][i % 3] as string, next);
        renameSync(next, join(home, 'x'));
        await new Promise(setImmediate);
      }
    };
    symlinkSync(join(home, 'a'), join(home, 'x'));
    const attacking = attack();
    const path = `path=${encodeURIComponent(join(home, 'x/control-token'))}`;
    const seen = new Set<string>();
    for (let i = 0; i < ROUNDS; i++) {
      const as = i % 2 === 0 ? '' : '&user=nobody';
      const read = await daemon.ask(`/files?${path}${as}`);
      if (read.status === 200) seen.add(`${as}${read.text}`);
      await daemon.ask(`/files?${path}&user=nobody`, { method: 'PUT', body: 'mine' });
      await daemon.ask(`/files?path=${encodeURIComponent(join(home, 'x'))}&user=nobody`);
    }
    is_over = true;
    await attacking;
    expect(seen.has(token) || seen.has('&user=nobodysecret')).toBe(false);
    expect([...seen]).toContain('&user=nobodymine');
    expect(readFileSync(join(state_dir, 'control-token'), 'utf8')).toBe(token);
    expect(readFileSync(join(secret, 'control-token'), 'utf8')).toBe('secret');
    unlinkSync(join(home, 'x'));
    rmSync(home, { recursive: true });
  },
);
