import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { MANAGER } from '../support/manager-program.ts';
import { scratchFolder } from '../support/scratch.ts';

const DIST = dirname(MANAGER);
/** Is in the code of the runtime `kubernetes`, and nowhere else. */
const MARK = 'selfsubjectaccessreviews';
/** Writes which files were loaded into the one that is named. */
const REPORT = `process.on('exit', () => require('node:fs').writeFileSync(process.env.LOADED, Object.keys(require.cache).join('\\n')));`;

/** The names of the files of `dist/` that a manager has loaded when it ends. */
async function loadedBy(runtime: string, ...options: string[]): Promise<string[]> {
  const folder = scratchFolder();
  const [report, loaded] = [join(folder, 'report.cjs'), join(folder, 'loaded')];
  writeFileSync(report, REPORT);
  const args = ['--listen', '127.0.0.1:0', '--runtime', runtime, '--data-dir', join(folder, 'data')];
  const files = ['--database', `sqlite:${join(folder, 'm.db')}`, '--secret-key-file', join(folder, 'key')];
  const child: ChildProcess = spawn(
    process.execPath,
    ['--require', report, MANAGER, ...args, ...files, ...options],
    { env: { PATH: process.env.PATH, LOADED: loaded }, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let log = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const ended = once(child, 'close');
  const hasBegun = () => {
    if (child.exitCode === null && !log.includes('"msg":"listening"')) throw new Error(log);
  };
  await eventually(hasBegun, { timeout: 60_000, interval: 20 });
  child.kill('SIGTERM');
  await ended;
  return readFileSync(loaded, 'utf8')
    .split('\n')
    .filter((path) => dirname(path) === DIST)
    .map((path) => basename(path));
}

const ofKubernetes = (names: string[]) =>
  names.filter((name) => readFileSync(join(DIST, name), 'utf8').includes(MARK));

it('what makes Pods is in one file of the package, which no other program shares', () => {
  const names = readdirSync(DIST).filter((name) => name.endsWith('.cjs'));
  expect(ofKubernetes(names)).toEqual([expect.stringMatching(/^kubernetes-runtime-[\w-]+\.cjs$/)]);
});

it.each(['none', 'local-unsafe'])('a manager with --runtime %s does not load it', async (runtime) => {
  const loaded = await loadedBy(runtime);
  expect(loaded).toContain('sandbox-manager-program.cjs');
  expect(ofKubernetes(loaded)).toEqual([]);
});

it('a manager with --runtime kubernetes does, and ends with one line where there is no cluster', async () => {
  const config = join(scratchFolder(), 'config.yaml');
  writeFileSync(config, 'templates: { default: { image: "any:1" } }\n');
  const options = ['--kubernetes-image', 'product:1', '--kubeconfig', '/nowhere', '--config', config];
  expect(ofKubernetes(await loadedBy('kubernetes', ...options))).toHaveLength(1);
});
