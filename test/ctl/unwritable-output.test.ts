import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { run } from '../support/ctl/sandboxctl.ts';
import { StandInDaemon, succeed } from '../support/ctl/stand-in-daemon.ts';
import { eventually } from '../support/eventually.ts';
import { scratchFolder } from '../support/scratch.ts';

const BIN = fileURLToPath(new URL('../../bin/', import.meta.url));

/** Runs a program with its output redirected as a shell has it. */
function redirected(program: string, args: string[], to: string): Promise<{ code: unknown; stderr: string }> {
  const line = `"$0" "$@" ${to}`;
  return new Promise((resolve) => {
    execFile(
      '/bin/bash',
      ['-o', 'pipefail', '-c', line, process.execPath, `${BIN}${program}.ts`, ...args],
      (error, _, stderr) => resolve({ code: error?.code ?? 0, stderr }),
    );
  });
}

const FULL = 'no space left on the device';

describe.each(['sandboxd', 'sandboxctl', 'sandbox-manager'])('%s', (program) => {
  it.each(['--help', '--version'])('says in one line that %s finds a full device', async (flag) => {
    expect(await redirected(program, [flag], '>/dev/full')).toEqual({
      code: 1,
      stderr: `${program}: cannot write to stdout: ${FULL}\n`,
    });
  });

  it('ends without a word where the reader has closed its pipe, and where nothing can be said', async () => {
    expect(await redirected(program, ['--help'], '| true')).toEqual({ code: 0, stderr: '' });
    expect(await redirected(program, ['--help'], '>/dev/full 2>&1')).toEqual({ code: 1, stderr: '' });
    expect(await redirected(program, ['--none'], '2>/dev/full')).toEqual({ code: 2, stderr: '' });
  });
});

it('a manager that cannot print its summary says so, and serves', async () => {
  const folder = scratchFolder();
  const options = ['--listen', '127.0.0.1:0', '--runtime', 'none', '--data-dir', folder];
  const files = ['--database', `sqlite:${join(folder, 'm.db')}`, '--secret-key-file', join(folder, 'key')];
  const child = spawn('/bin/sh', [
    '-c',
    'exec "$0" "$@" >/dev/full',
    process.execPath,
    `${BIN}sandbox-manager.ts`,
    ...options,
    ...files,
  ]);
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'close');
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  await eventually(() => expect(log).toContain('the summary cannot be printed'), { timeout: 60_000 });
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

describe('what sandboxctl prints', () => {
  it('is one line where the device is full', async () => {
    const daemon = new StandInDaemon();
    onTestFinished(() => daemon.stop());
    daemon.on('GET /processes', (_, response) => succeed(response, 200, { processes: [] }));
    const args = ['--state-dir', '/none', '--url', await daemon.start()];
    expect(await redirected('sandboxctl', [...args, 'ps', '--json'], '>/dev/full')).toEqual({
      code: 1,
      stderr: `sandboxctl: cannot write the output: ${FULL}\n`,
    });
    for (const help of [
      ['run', '--help'],
      ['sandbox', 'list', '--help'],
    ])
      expect(await redirected('sandboxctl', help, '>/dev/full')).toMatchObject({ code: 1 });
    expect((await run(['run', '--help'])).code).toBe(0);
  });
});
