import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { missingEmulation, startEmulated } from './emulated.ts';

/**
 * Makes the release of the present commit twice, from two clones in folders, time zones and languages of their own, one
 * after the other; compares every byte; and has others' programs check what came out, which is then in `dist/release/`.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const RELEASE = join(ROOT, 'dist/release');
const PYTHON = join(ROOT, 'node_modules/.cache/interop/bin/python');
const VALIDATE = `
import sys
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(None if error is None else str(error))
`;
const BUILDERS = [
  { folder: 'one', TZ: 'UTC', LANG: 'C.UTF-8' },
  { folder: 'a/deeper/and longer', TZ: 'Pacific/Auckland', LANG: 'de_DE.UTF-8' },
];

function run(cwd: string, program: string, args: string[], env: NodeJS.ProcessEnv = {}): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${status}:\n${stdout}${stderr}`);
  return stdout;
}

/** Clones the commit into the folder and makes its release there; returns where that is. */
function made(folder: string, env: NodeJS.ProcessEnv): string {
  mkdirSync(folder, { recursive: true });
  run(folder, 'git', ['clone', '--quiet', '--no-hardlinks', ROOT, '.']);
  run(folder, 'npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund'], env);
  run(folder, 'npm', ['run', '--silent', 'build'], env);
  const node = join(folder, 'node_modules/.bin/node');
  process.stdout.write(run(folder, node, ['.build/release/make.ts', join(folder, 'dist/release')], env));
  return join(folder, 'dist/release');
}

function say(line: string): void {
  console.log(line);
}

// The modes of what is cloned.
process.umask(0o022);
const scratch = mkdtempSync(join(tmpdir(), 'sandboxd-release-check-'));
try {
  if (run(ROOT, 'git', ['status', '--porcelain']).trim() !== '')
    say('what is not committed is not in the release');
  const [first = '', second = ''] = BUILDERS.map(({ folder, ...env }) => made(join(scratch, folder), env));
  const names = readdirSync(first).sort();
  const others = readdirSync(second).sort();
  const differing = names.filter(
    (name) =>
      !existsSync(join(second, name)) ||
      !readFileSync(join(first, name)).equals(readFileSync(join(second, name))),
  );
  if (differing.length > 0 || others.length !== names.length) {
    throw new Error(`not the same bytes when made again: ${differing.join(', ') || others.join(', ')}`);
  }
  for (const name of names)
    say(`${String(statSync(join(first, name)).size).padStart(10)} bytes, twice the same: ${name}`);
  rmSync(RELEASE, { recursive: true, force: true });
  cpSync(first, RELEASE, { recursive: true });

  run(RELEASE, 'sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS']);
  say('SHA256SUMS: sha256sum agrees');
  const bill = names.find((name) => name.endsWith('.cdx.json')) ?? '';
  if (spawnSync(PYTHON, ['-c', 'import cyclonedx.validation.json, jsonschema']).status === 0) {
    run(RELEASE, PYTHON, ['-c', VALIDATE, bill]);
    say(`${bill}: cyclonedx-python-lib accepts it`);
  } else say(`${bill}: not validated, cyclonedx-python-lib is not installed here (test/interop/tools.sh)`);
  const images = names.filter((name) => name.endsWith('.tar.gz'));
  const own = images.find((name) => name.includes(`-${process.arch}.`)) ?? '';
  execFileSync('tar', ['-xzf', join(RELEASE, own), '-C', scratch]);
  say(
    `${own}: started here, it is ${run('/', join(scratch, 'usr/local/bin/sandboxd'), ['--version']).trim()}`,
  );
  for (const image of images.filter((name) => name.includes('-arm64.') && name !== own)) {
    const missing = missingEmulation();
    if (missing) say(`${image}: start skipped, ${missing}`);
    else
      say(
        `${image}: started, published to and stopped under qemu-user, it is ${await startEmulated(join(RELEASE, image))}`,
      );
  }
} catch (error) {
  console.error(`release:check: ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
