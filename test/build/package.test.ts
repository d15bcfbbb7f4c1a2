import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { VERSION } from '../../src/base/version.ts';
import { scratchFolder } from '../support/scratch.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAMS = ['sandboxd', 'sandboxctl', 'sandbox-manager'];
/** What npm says where it reaches no registry. */
const NO_REGISTRY = /ENOTCACHED|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT|FETCH_ERROR/;

function run(cwd: string, program: string, ...args: string[]): SpawnSyncReturns<string> {
  return spawnSync(program, args, { cwd, encoding: 'utf8' });
}

const OFFLINE = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', '--fetch-retries=0'];

/** The archive of the package in this folder, which has a package of its own. */
function packedInto(folder: string): string {
  // Its scripts would build again what the other tests run right now.
  const options = ['--ignore-scripts', '--loglevel=error', '--pack-destination', folder];
  const packed = run(ROOT, 'npm', 'pack', ...options);
  expect([packed.status, packed.stderr]).toEqual([0, '']);
  writeFileSync(join(folder, 'package.json'), '{}');
  return `./${packed.stdout.trim()}`;
}

it('the packed package installs and runs elsewhere (skipped where npm reaches no registry)', (test) => {
  const folder = scratchFolder();
  const archive = packedInto(folder);
  const installed = run(folder, 'npm', 'install', ...OFFLINE, archive);
  test.skip(NO_REGISTRY.test(installed.stderr), 'npm reaches no registry');
  expect([installed.status, installed.stderr]).toEqual([0, '']);

  const bin = join(folder, 'node_modules/.bin');
  for (const name of PROGRAMS) {
    const { stdout, stderr } = run(folder, join(bin, name), '--version');
    expect([name, stdout, stderr]).toEqual([name, `${VERSION}\n`, '']);
  }
  writeFileSync(
    join(folder, 'consumer.mts'),
    `import { EVENT_TYPES, type EventPayloads } from 'sandboxd/events';
import { verify } from 'sandboxd/signature';
const payload: EventPayloads['agent.event'] = { types: EVENT_TYPES.length };
console.log(payload, verify('secret', 'body', 'not a signature'));
`,
  );
  const consumed = run(folder, join(bin, 'node'), 'consumer.mts');
  expect([consumed.stdout, consumed.stderr]).toEqual(['{ types: 10 } false\n', '']);
  const tsc = [join(ROOT, 'node_modules/.bin/tsc'), '--noEmit', '--module', 'nodenext', '--target', 'es2024'];
  const types = ['--typeRoots', join(ROOT, 'node_modules/@types'), '--types', 'node', 'consumer.mts'];
  const checked = run(folder, tsc[0] as string, ...tsc.slice(1), ...types);
  expect([checked.status, checked.stdout]).toEqual([0, '']);
}, 300_000);

const SYSTEMS = [
  ['darwin', 'arm64'],
  ['win32', 'x64'],
];

it('npm installs the package on other systems, for what it exports (skipped where npm reaches no registry)', (test) => {
  const folder = scratchFolder();
  const archive = packedInto(folder);
  for (const [os, cpu] of SYSTEMS) {
    const options = [...OFFLINE, `--os=${os}`, `--cpu=${cpu}`, '--dry-run'];
    const { status, stdout, stderr } = run(folder, 'npm', 'install', ...options, archive);
    test.skip(NO_REGISTRY.test(stderr + stdout), 'npm reaches no registry');
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).not.toMatch(/linux/);
  }
}, 300_000);

it('the packed types name no other package, and no file that is not there', () => {
  const dist = join(ROOT, 'dist');
  const files = globSync('types{,-cjs}/**/*.d.ts', { cwd: dist });
  expect(files.length).toBeGreaterThan(40);
  const wrong = files.flatMap((path) => {
    const text = readFileSync(join(dist, path), 'utf8');
    const named = [...text.matchAll(/(?:\bfrom |\bimport\()["']([^"']+)["']/g)].map(([, name = '']) => name);
    return named
      .filter((name) => !files.includes(join(dirname(path), name.replace(/\.ts$/, '.d.ts'))))
      .map((name) => `${path} -> ${name}`);
  });
  expect(wrong).toEqual([]);
});

it('the packed types are as published (else: npm run published)', async () => {
  const dist = join(ROOT, 'dist');
  const files = globSync('types/**/*.d.ts', { cwd: dist }).sort();
  const text = files.map((path) => `// ${path}\n${readFileSync(join(dist, path), 'utf8')}`).join('\n');
  await expect(text).toMatchFileSnapshot('../published/types.d.ts.txt');
});
