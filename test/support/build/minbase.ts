import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execaSync } from 'execa';
import { IS_ROOT } from '../rights.ts';
import { ADMIN_PATH, missingPrograms } from '../run-sync.ts';

/** Kept between runs: making it takes a minute or two and a mirror that can be reached. */
const ROOT = fileURLToPath(new URL('../../../node_modules/.cache/minbase', import.meta.url));
const SUITE = 'bookworm';
const MAKE_MS = 300_000;
/** Where the tree and the state are mounted, and which program of the machine is lent. */
export const TINI = '/usr/bin/tini-static';
const FOLDERS = ['usr/local/lib/sandboxd', 'state', 'work'];
const FILES = ['usr/local/bin/sandboxd', 'usr/local/bin/sandboxctl', TINI.slice(1)];

/** A root with Debian's smallest base and no Node; null, with the reason told, where none can be made. */
export function minbase(): string | null {
  const missing = missingPrograms(['debootstrap', 'bwrap', TINI]);
  if (missing.length > 0) return skip(`${missing.join(', ')} is missing`);
  if (!IS_ROOT) return skip('it needs root');
  if (!existsSync(ROOT) && !make()) return skip('debootstrap did not succeed');
  for (const folder of FOLDERS) mkdirSync(join(ROOT, folder), { recursive: true });
  for (const file of FILES)
    if (!existsSync(join(ROOT, file))) writeFileSync(join(ROOT, file), '', { mode: 0o755 });
  return ROOT;
}

function make(): boolean {
  const unfinished = `${ROOT}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  const { failed } = execaSync('debootstrap', ['--variant=minbase', SUITE, unfinished], {
    env: { PATH: ADMIN_PATH },
    timeout: MAKE_MS,
    reject: false,
  });
  if (failed) rmSync(unfinished, { recursive: true, force: true });
  else renameSync(unfinished, ROOT);
  return !failed;
}

function skip(why: string): null {
  console.log(`skipped, the tests in an empty root: ${why}`);
  return null;
}
