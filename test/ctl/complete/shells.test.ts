import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { run } from '../../support/ctl/sandboxctl.ts';
import { StandInDaemon, succeed } from '../../support/ctl/stand-in-daemon.ts';
import { atTerminal } from '../../support/ctl/typed-terminal.ts';
import { eventually } from '../../support/eventually.ts';
import { SANDBOXD } from '../../support/sandboxd-program.ts';
import { scratchFolder } from '../../support/scratch.ts';

const ID = 'sbx_019a2b3c-4d5e-7f60-8123-000000000001';
const without = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status !== 0;

let folder: string;
let manager: StandInDaemon;
let env: NodeJS.ProcessEnv;
/** Made by a name that was executed. */
let spoiled: string;

beforeEach(async () => {
  folder = scratchFolder();
  manager = new StandInDaemon();
  onTestFinished(() => manager.stop());
  const url = await manager.start();
  spoiled = join(folder, 'spoiled');
  const names = [
    'a b',
    "it's",
    `$(touch ${spoiled.replaceAll('/', '')})`,
    '`touch spoiled`',
    'q"uote',
    'semi;touch spoiled',
  ];
  names.push('new\nline', '\u001b]0;title\u0007', 'turned\u202e', 'ünï', 'star*', 'back\\slash', 'deep');
  manager.on(`GET /sandboxes/${ID}/files/list`, (_, response) => {
    const entries = names.map((name) => ({
      name,
      path: `/d/${name}`,
      type: name === 'deep' ? 'dir' : 'file',
    }));
    succeed(response, 200, { path: '/d', entries, next_cursor: null });
  });
  manager.on(`GET /sandboxes/${ID}/processes`, (_, response) => {
    const processes = [
      { process_id: 'web-1', exited_at: null },
      { process_id: 'done-2', exited_at: 'then' },
    ];
    succeed(response, 200, { processes });
  });
  manager.on('GET /sandboxes', (_, response) => {
    succeed(response, 200, { sandboxes: [{ id: ID }], count: 1, has_more: false });
  });
  mkdirSync(join(folder, 'bin'));
  symlinkSync(join(dirname(SANDBOXD), 'sandboxctl.cjs'), join(folder, 'bin/sandboxctl'));
  mkdirSync(join(folder, 'sandboxctl'));
  writeFileSync(join(folder, 'sandboxctl/token'), 'a-token');
  writeFileSync(
    join(folder, 'sandboxctl/config.yaml'),
    `default_profile: team\nprofiles:\n  team: { manager: "${url}", token_file: token, sandbox: ${ID} }\n  other: { url: x }\n`,
  );
  env = { PATH: `${join(folder, 'bin')}:${process.env.PATH}`, XDG_CONFIG_HOME: folder, HOME: folder };
});

describe('what the program offers', () => {
  const offered = async (...words: string[]) =>
    (await run(['__complete', 'words', ...words], env)).stdout.split('\n').slice(0, -1);

  it('are paths, processes, sandboxes and profiles, and no name that a terminal would act upon', async () => {
    const paths = await offered('cat', '/d/');
    expect(paths).toContain("/d/it's");
    expect(paths).toContain('/d/deep/');
    expect(paths).toHaveLength(10);
    expect(await offered('cp', ':/d/a')).toEqual([':/d/a b']);
    expect(await offered('cp', '/d/a')).toEqual([]);
    expect(await offered('ls', '')).toEqual(['/']);
    expect(await offered('logs', '')).toEqual(['done-2', 'web-1']);
    expect(await offered('signal', 'w')).toEqual(['web-1']);
    expect(await offered('stop', '')).toEqual(['web-1']);
    expect(await offered('sandbox', 'pause', 's')).toEqual([ID]);
    expect(await offered('--profile', 'team', '--sandbox', 'sbx_019')).toEqual([ID]);
    expect(await offered('ps', '--sandbox=sbx_')).toEqual([`--sandbox=${ID}`]);
    expect(await offered('--profile', '')).toEqual(['team', 'other']);
    expect(await offered('run', '--', 'cat', '/d/')).toEqual([]);
    expect(await offered('--manager', 'http://elsewhere.example', 'cat', '/d/')).toEqual([]);
    expect(manager.received.every(({ headers }) => headers.authorization === 'Bearer a-token')).toBe(true);
  });

  it('is nothing, in silence and in time, where nobody answers or nonsense is answered', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    onTestFinished(() => void silent.close());
    const hanging = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const nothing = { code: 0, stdout: '', stderr: '' };
    for (const url of [hanging, 'http://127.0.0.1:1', 'nonsense']) {
      expect(await run(['__complete', 'words', '--url', url, 'cat', '/d/'], env)).toEqual(nothing);
    }
    manager.on(`GET /sandboxes/${ID}/files/list`, (_, response) =>
      succeed(response, 200, { entries: [null] }),
    );
    expect(await run(['__complete', 'words', 'cat', '/d/'], env)).toEqual(nothing);
    expect(await run(['__complete'], env)).toEqual(nothing);
    expect(await run(['__complete', 'bash'], env)).toEqual(nothing);
  });
});

/** A shell at a terminal that has the completion, and in which the command itself prints its arguments. */
const SHELLS: Record<string, { args: string[]; begin: (script: string) => string }> = {
  bash: {
    args: ['--norc', '--noprofile', '-i'],
    begin: (script) => `PS1='ready> '; source ${script}; sandboxctl() { printf '<%s>' "$@"; }`,
  },
  fish: {
    args: ['--no-config', '--private', '-i'],
    begin: (script) => `source ${script}; function sandboxctl; printf '<%s>' $argv; end`,
  },
  zsh: {
    args: ['-f', '-i'],
    begin: (script) =>
      `PS1='ready> '; autoload -Uz compinit; compinit -u -D; source ${script}; sandboxctl() { printf '<%s>' "$@"; }`,
  },
};

describe.each(Object.keys(SHELLS))('completion at a terminal of %s', (shell) => {
  const skipped = without(shell) ? ' (skipped: it is not installed here)' : '';

  it.skipIf(without(shell))(
    `inserts each name as the one that it is, and executes none${skipped}`,
    async () => {
      const { args, begin } = SHELLS[shell] as (typeof SHELLS)[string];
      const script = join(folder, 'script');
      writeFileSync(
        script,
        spawnSync(join(folder, 'bin/sandboxctl'), ['completion', shell], { encoding: 'utf8' }).stdout,
      );
      const terminal = atTerminal(shell, args, { ...env, TERM: 'xterm' });
      terminal.type(`cd ${folder}; ${begin(script)}; echo be''gun\r`);
      await terminal.shows(/begun/);
      const typed = async (keys: string, printed: string) => {
        const before = terminal.text().length;
        terminal.type(`${keys}\t`);
        // What is typed while the program is asked waits for it.
        terminal.type('\r');
        await eventually(() => expect(terminal.text().slice(before)).toContain(printed), 30_000);
      };
      await typed('sandboxctl cat /d/a', '<cat></d/a b>');
      await typed('sandboxctl cp :/d/it', "<cp><:/d/it's>");
      await typed('sandboxctl rm :/d/q', '<rm><:/d/q"uote>');
      await typed('sandboxctl cat /d/sem', '<cat></d/semi;touch spoiled>');
      await typed('sandboxctl cat /d/\\$', `<cat></d/$(touch ${spoiled.replaceAll('/', '')})>`);
      await typed('sandboxctl cat /d/\\`', '<cat></d/`touch spoiled`>');
      await typed('sandboxctl cat /d/b', '<cat></d/back\\slash>');
      await typed('sandboxctl cat /d/sta', '<cat></d/star*>');
      await typed('sandboxctl ls /d/de', '<ls></d/deep/>');
      await typed('sandboxctl logs w', '<logs><web-1>');
      await typed('sandboxctl sandbox pause sbx', `<sandbox><pause><${ID}>`);
      await typed('sandboxctl --profile oth', '<--profile><other>');
      expect(existsSync(spoiled)).toBe(false);
      expect(existsSync(join(folder, spoiled.replaceAll('/', '')))).toBe(false);
    },
  );
});
