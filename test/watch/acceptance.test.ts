import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Program } from '../support/watch/program.ts';

/** A folder with `scenario.mjs` and `check.mjs`: file operations, and what their events have to be. */
const folder = process.env.FILEWATCH_ACCEPTANCE;
const title = folder
  ? 'the acceptance scenarios'
  : 'the acceptance scenarios (FILEWATCH_ACCEPTANCE is not set)';

let base: string;
let top: string;
let program: Program | null = null;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'acceptance-'));
  top = join(base, 'w');
});

afterEach(async () => {
  await program?.end('SIGKILL');
  rmSync(base, { recursive: true, force: true });
});

const file = (name: string) => join(base, name);
const run = (name: string, ...args: string[]) =>
  execFileSync(process.execPath, [join(folder ?? '', name), ...args], { encoding: 'utf8', stdio: 'pipe' });
const scenario = (...args: string[]) => run('scenario.mjs', ...args, '--dir', top, '--out', file('expected'));

/** Not synchronously: what the program says has to be read meanwhile. */
const scenarioAsync = (...args: string[]) =>
  new Promise((resolve) => {
    const command = [join(folder ?? '', 'scenario.mjs'), ...args, '--dir', top, '--out', file('expected')];
    spawn(process.execPath, command, { stdio: 'ignore' }).once('exit', resolve);
  });

async function start(): Promise<Program> {
  program = new Program(top, file('commits'), file('events'));
  await program.ready();
  return program;
}

const check = () => {
  try {
    return run('check.mjs', '--expected', file('expected'), '--received', file('events'));
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
};

const passed = /REPLAY OK[\s\S]*TOTAL (\d+)\/\1 scenarios pass/;

describe.skipIf(!folder)(title, () => {
  it.each(['live', 'burst', 'overflow', 'fuzz'])(
    'hold for the group %s',
    async (group) => {
      mkdirSync(top);
      scenario('setup', '--groups', group);
      const running = await start();
      await scenarioAsync('run', '--groups', group);
      await running.end('SIGTERM');
      expect(check()).toMatch(passed);
    },
    300_000,
  );

  it('hold for changes while the watch is not running', async () => {
    mkdirSync(top);
    scenario('offline');
    await (await start()).end('SIGTERM');
    scenario('offline');
    await (await start()).end('SIGTERM');
    expect(check()).toMatch(passed);
  }, 120_000);

  it('hold for a watch_dir that is removed and made again', async () => {
    mkdirSync(top);
    const running = await start();
    await scenarioAsync('root');
    await running.end('SIGTERM');
    expect(check()).toMatch(passed);
  }, 120_000);
});
