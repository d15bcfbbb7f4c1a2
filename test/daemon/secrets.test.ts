import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { launcher } from '../../.build/image/launcher.ts';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { needsLook } from '../support/rights.ts';
import { SANDBOXD, startProgram, startSandboxd } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

vi.setConfig({ testTimeout: 60_000 });

/** Loaded machines are slow. */
const WAIT = { timeout: 60_000 };
const SECRET = 'a-secret-made-for-this-test';
const MAIN_COMMAND = ['--', 'sh', '-c', 'echo "[$NODE_OPTIONS]"; env | grep ^SANDBOXD_CHILD; sleep 60'];

describe('the webhook secret', () => {
  it.each<[string, string[], Record<string, string>]>([
    ['as an option', ['--webhook-secret', SECRET], {}],
    ['as an option with =', [`--webhook-secret=${SECRET}`], {}],
    ['in the environment', [], { SANDBOXD_WEBHOOK_SECRET: SECRET }],
  ])(
    'given %s signs deliveries, and is visible neither in the daemon nor in its children',
    async (_, args, env) => {
      needsLook();
      const consumer = await startConsumer();
      const program = await startSandboxd(
        [
          ...args,
          '--webhook-url',
          consumer.url,
          '--',
          'sh',
          '-c',
          'env; cat /proc/$PPID/environ /proc/$PPID/cmdline; exec sleep 1000',
        ],
        { env: { ...env, PLAIN: 'stays' } },
      );
      await consumer.arrival('sandbox.ready');
      expect(consumer.unsigned(SECRET)).toEqual([]);
      for (const file of ['cmdline', 'environ']) {
        expect(readFileSync(`/proc/${program.pid}/${file}`, 'latin1'), file).not.toContain(SECRET);
      }
      await eventually(() => expect(program.stdout).toContain('PLAIN=stays'), WAIT);
      await eventually(() => expect(program.stdout).toContain('sandboxd.cjs'), WAIT);
      expect(program.stdout + program.stderr).not.toContain(SECRET);
      expect(program.stdout).not.toContain('SANDBOXD_WEBHOOK_SECRET=a');
      expect(consumer.deliveries.map(({ body }) => body).join()).not.toContain(SECRET);
    },
  );
});
describe('variables that are meant for another Node', () => {
  it.each([
    ["npm's command", () => SANDBOXD],
    ["the image's launcher", launcherBesideDist],
  ])('do not affect a daemon started by %s, and reach its processes', async (_, programOf) => {
    needsLook();
    const folder = scratchFolder();
    const preload = join(folder, 'preload.cjs');
    writeFileSync(preload, `process.title = 'instrumented'`);
    const state_dir = join(folder, 'state');
    const NODE_OPTIONS = `--require=${preload} --inspect=127.0.0.1:0`;
    const env = { NODE_OPTIONS, NODE_PATH: folder, SANDBOXD_WEBHOOK_SECRET: SECRET };
    const daemon = startProgram([programOf(), '--port', '0', '--state-dir', state_dir, ...MAIN_COMMAND], {
      env,
      state_dir,
    });
    await daemon.logged('ready');
    await expect.poll(() => daemon.stdout).toBe(`[${NODE_OPTIONS}]\n`);
    const environment = readFileSync(`/proc/${daemon.pid}/environ`, 'utf8');
    expect(environment).not.toMatch(/(^|\0)NODE_(OPTIONS|PATH)=/);
    expect(environment).not.toContain(SECRET);
    expect(readFileSync(`/proc/${daemon.pid}/cmdline`, 'utf8')).toContain('--disable-sigusr1');
    expect(readFileSync(`/proc/${daemon.pid}/comm`, 'utf8')).not.toContain('instrumented');
  });
});
/** The launcher of the image, in a tree whose program is the built one. */
function launcherBesideDist(): string {
  const folder = scratchFolder();
  const library = join(folder, 'lib/sandboxd');
  for (const path of ['bin', 'lib/sandboxd']) mkdirSync(join(folder, path), { recursive: true });
  symlinkSync(process.execPath, join(library, 'node'));
  writeFileSync(join(library, 'sandboxd.cjs'), `require(${JSON.stringify(SANDBOXD)})`);
  writeFileSync(join(folder, 'bin/sandboxd'), launcher('sandboxd', process.arch), { mode: 0o755 });
  return join(folder, 'bin/sandboxd');
}
