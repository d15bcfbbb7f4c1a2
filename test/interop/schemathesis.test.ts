import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { INTEROP, installed, missing, runInstalled, runProgram } from '../support/interop.ts';
import { claimedFrom } from '../support/manager/built-manager.ts';
import { needsIsolation } from '../support/rights.ts';
import { scratchFolder } from '../support/scratch.ts';

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAM = 'schemathesis';
/** Few requests of each kind, always the same: `SCHEMATHESIS_OPTIONS='--max-examples 100 --seed 2'` makes more. */
const OPTIONS = (
  process.env.SCHEMATHESIS_OPTIONS ?? '--max-examples 1 --seed 1 --phases examples,fuzzing'
).split(' ');
const HOOKS = { SCHEMATHESIS_HOOKS: join(INTEROP, 'hooks.py'), PYTHONDONTWRITEBYTECODE: '1' };
const FINE = 'No issues found';

const without_bwrap = spawnSync('bwrap', ['--version']).status !== 0;
const title = missing(PROGRAM) || (without_bwrap ? ' (skipped: bwrap is not installed here)' : '');

describe.skipIf(title !== '')(
  `schemathesis finds no answer that the document does not describe${title}`,
  () => {
    it('in a daemon', async () => {
      needsIsolation();
      const folder = scratchFolder();
      const box = [
        ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', folder],
        ...['--unshare-net', '--unshare-pid', '--unshare-ipc', '--die-with-parent'],
      ];
      const env = {
        HOME: folder,
        NODE: process.execPath,
        CHECKOUT,
        SCHEMATHESIS: installed(PROGRAM),
        ...HOOKS,
      };
      const script = join(INTEROP, 'boxed-daemon.sh');
      expect(await runProgram('bwrap', [...box, script, folder, ...OPTIONS], { env })).toContain(FINE);
    }, 1_800_000);

    it('in a manager with a real sandbox', async () => {
      const { url, token, call, path } = await claimedFrom('--node-sandboxes', '3', '--node-memory', '2Gi');
      // Where the document's examples start processes.
      await call('POST', `${path}/files?path=/work&mkdir=true`);
      const { text } = await call('POST', '/api/v1/sandboxes', {});
      const VICTIM = JSON.parse(text).data.sandbox_id;
      const SANDBOX = path.split('/').at(-1) ?? '';
      const printed = await runInstalled(
        PROGRAM,
        ['--config-file', join(INTEROP, 'sandbox-manager.toml'), 'run', `${url}/openapi.json`, ...OPTIONS],
        { cwd: scratchFolder(), env: { TOKEN: token, SANDBOX, VICTIM, ...HOOKS } },
      );
      expect(printed).toContain(FINE);
      // The sandbox was really asked.
      const { processes } = JSON.parse((await call('GET', `${path}/processes`)).text).data;
      expect(processes.length).toBeGreaterThan(0);
    }, 1_800_000);
  },
);
