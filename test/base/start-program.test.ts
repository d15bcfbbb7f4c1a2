import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { chdir, cwd } from 'node:process';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { readStatNow } from '../../src/base/linux/procfs.ts';
import {
  leaveProgram,
  type ProgramOptions,
  type StartedProgram,
  startProgram,
  TO_PROGRAM,
} from '../../src/base/start-program.ts';
import { scratchFolder } from '../support/scratch.ts';

const started: StartedProgram[] = [];

afterEach(() => {
  for (const { child } of started.splice(0)) child.kill('SIGKILL');
});

async function start(script: string, options: Partial<ProgramOptions> = {}): Promise<StartedProgram> {
  const stdio = ['ignore', 'pipe', 'pipe'] as const;
  const program = await startProgram(['/bin/sh', '-c', script], { env: {}, stdio, ...options });
  started.push(program);
  return program;
}

test('a program gets the variables, files and directory that it is given, and no more', async () => {
  const { child, ended } = await start('export -p; pwd -P; cat <&3', {
    env: { A: 'b' },
    cwd: '/tmp',
    stdio: ['ignore', 'pipe', 'pipe', TO_PROGRAM],
  });
  (child.stdio[3] as Writable).end('sent\n');
  const output = await text(child.stdout as Readable);
  expect(output.replace(/^export (OLDPWD|PWD=.*)\n/gm, '')).toBe("export A='b'\n/tmp\nsent\n");
  expect(await ended).toEqual({ code: 0, signal: null, is_late: false, refusal: null });
});

test('how a program ends is told: code, signal, a refusal, a time limit', async () => {
  expect(await (await start('exit 7')).ended).toMatchObject({ code: 7, signal: null });
  expect(await (await start('kill -TERM $$')).ended).toMatchObject({ code: null, signal: 'SIGTERM' });
  const late = await start('exec sleep 60', { timeout_ms: 50 });
  expect(await late.ended).toMatchObject({ signal: 'SIGTERM', is_late: true });
  const missing = await startProgram(['/no/such/program'], { env: {}, stdio: ['ignore'] });
  expect(missing.child.pid).toBe(undefined);
  expect(await missing.ended).toEqual({ code: null, signal: null, is_late: false, refusal: 'ENOENT' });
});

test("a program's end is told while programs of its own hold its pipes", async () => {
  const { child, ended } = await start('sleep 60 & echo $!');
  const pid = Number((await once(child.stdout as Readable, 'data'))[0]);
  expect(await ended).toMatchObject({ code: 0 });
  process.kill(pid, 'SIGKILL');
});

test('a detached program leads a session of its own, and is left with nothing that listens', async () => {
  const program = await start('exec sleep 60', { is_detached: true, stdio: ['ignore', 'ignore', 'ignore'] });
  const { child } = program;
  leaveProgram(program);
  expect(readStatNow(child.pid as number)).toMatchObject({ session: child.pid });
  expect(child.eventNames()).toEqual([]);
});

test('a program is started where this one is, though its directory is removed', async () => {
  const before = cwd();
  const folder = join(scratchFolder(), 'gone');
  mkdirSync(folder);
  chdir(folder);
  try {
    rmSync(folder, { recursive: true });
    const { child, ended } = await start('readlink /proc/self/cwd');
    expect(await text(child.stdout as Readable)).toBe(`${folder} (deleted)\n`);
    expect(await ended).toMatchObject({ code: 0 });
  } finally {
    chdir(before);
  }
});

test('messages pass in the format of the engine, and one that comes too late is no harm', async () => {
  const echo = 'process.on("message", (message) => process.send(message, () => process.disconnect()))';
  const program = await startProgram([process.execPath, '-e', echo], {
    env: {},
    stdio: ['ignore', 'ignore', 'ignore'],
    has_channel: true,
  });
  started.push(program);
  const { child, ended } = program;
  const sent = new Map([[1n, new Uint8Array([1, 2])]]);
  child.send(sent);
  expect((await once(child, 'message'))[0]).toEqual(sent);
  expect(await ended).toMatchObject({ code: 0 });
  child.send('late');
  await new Promise(setImmediate);
});
