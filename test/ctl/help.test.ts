import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SANDBOXD } from '../support/sandboxd-program.ts';

const PROGRAMS = ['sandboxctl', 'sandboxd', 'sandbox-manager'];

function run(program: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(join(dirname(SANDBOXD), `${program}.cjs`), args, {
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

/** The commands that a help lists, by their own names, except `help` itself. */
function commandsIn(help: string): string[] {
  const [, list = ''] = help.split('\nCommands:\n');
  const names = [...(list.split('\n\n')[0] ?? '').matchAll(/^ {2}([a-z][^\s|]*)/gm)].map(
    ([, name = '']) => name,
  );
  return names.filter((name) => name !== 'help');
}

/** The help of a command and of all commands below it, by the words that ask for it. */
function helps(program: string, words: string[] = []): [string, string][] {
  const { status, stdout } = run(program, ...words, '--help');
  expect([words, status]).toEqual([words, 0]);
  const below = commandsIn(stdout).flatMap((name) => helps(program, [...words, name]));
  return [[[program, ...words].join(' '), stdout], ...below];
}

describe.each(PROGRAMS)('the help of %s', (program) => {
  const all = helps(program);

  it.each(all)('of %s ends with two examples of it', (words, help) => {
    const [, examples = ''] = help.split('\nExamples:\n');
    const lines = examples.split('\n\n')[0]?.trim().split('\n') ?? [];
    expect(lines).toHaveLength(2);
    for (const line of lines) expect(line.trim()).toMatch(new RegExp(`^${words}( |$)`));
  });

  it('shows each option of the program once', () => {
    const [[, own = ''] = []] = all;
    for (const [option] of own.matchAll(/(?<=^ {2}(?:-\w, )?)--[a-z-]+/gm)) {
      expect([option, own.match(new RegExp(`^ {2}(-\\w, )?${option}\\b(?!-)`, 'gm'))]).toEqual([
        option,
        [expect.any(String)],
      ]);
    }
    expect(all.filter(([, help]) => help.includes('\nGlobal Options:'))).toEqual([]);
  });

  it('is also what the command help prints', () => {
    expect(run(program, 'help')).toEqual({ status: 0, stdout: all[0]?.[1], stderr: '' });
    expect(run(program, 'help', 'completion').stdout).toBe(run(program, 'completion', '--help').stdout);
  });

  it('is hinted at by the nearest command where one is unknown', () => {
    const { status, stderr } = run(program, 'completon');
    expect([status, stderr]).toEqual([
      2,
      `${program}: unknown command 'completon' (Did you mean completion?)\n`,
    ]);
  });

  it('and its completion name every option', () => {
    const { status, stdout } = run(program, 'completion', 'bash');
    expect(status).toBe(0);
    for (const [, help] of all) {
      for (const [option] of help.matchAll(/(?<=^ {2}(?:-\w, )?)--[a-z-]+/gm)) {
        if (option !== '--help') expect(stdout).toContain(option);
      }
    }
  });
});

describe('a command that lacks a part', () => {
  it('is told which commands there are', () => {
    const { status, stdout, stderr } = run('sandbox-manager', 'token');
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toBe(run('sandbox-manager', 'token', '--help').stdout);
  });

  it('run asks for the separator where the options are those of the command to run', () => {
    expect(run('sandboxctl', 'run', 'ls', '-la')).toEqual({
      status: 125,
      stdout: '',
      stderr: "sandboxctl: unknown option '-la'; put -- before the command: sandboxctl run -- ls -la\n",
    });
    expect(run('sandboxctl', 'run', '--tmeout', '5s', '--', 'ls').stderr).toBe(
      "sandboxctl: unknown option '--tmeout' (Did you mean --timeout?)\n",
    );
  });
});
