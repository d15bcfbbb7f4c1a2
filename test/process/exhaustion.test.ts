import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isAlive, program, start } from '../support/process/harness.ts';

/** Sets how many files this process may have open; a shell does it, since this process may be unable to start one. */
let setter: ChildProcess;

beforeEach(() => {
  const script = `while read limit; do prlimit --pid ${process.pid} --nofile=$limit: && echo; done`;
  setter = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
});
afterEach(async () => {
  await limitFiles('1024');
  setter.kill();
});

async function limitFiles(limit: string): Promise<void> {
  setter.stdin?.write(`${limit}\n`);
  await once(setter.stdout as NodeJS.ReadableStream, 'data');
}

test('while no file can be opened a pause is refused, nobody stays stopped, and the next one is done', async () => {
  const { supervisor } = await start();
  const { process: view } = await supervisor.spawn({ command: program('tick.mjs'), process_id: 'tick' });
  await limitFiles('3');
  await expect(supervisor.pause()).rejects.toMatchObject({ code: 'too_many_requests' });
  expect(supervisor.is_paused).toBe(false);
  await limitFiles('1024');
  expect(await isAlive(view.pid)).toBe(true);
  await supervisor.pause();
  expect(await supervisor.get('tick')).toMatchObject({ state: 'paused' });
  await supervisor.resume();
});

test('while no file can be opened nobody is taken for ended, and a process can be asked for', async () => {
  const first = await start();
  await first.supervisor.spawn({ command: ['sleep', '1000'], process_id: 'p' });
  const { supervisor } = await first.again();
  await limitFiles('3');
  await new Promise((resolve) => setTimeout(resolve, 300)); // some looks of the one that is not its parent
  expect(await supervisor.get('p')).toMatchObject({ state: 'running' });
  await expect(supervisor.remove('p')).rejects.toMatchObject({ code: 'too_many_requests' });
  await limitFiles('1024');
  expect(await supervisor.get('p')).toMatchObject({ state: 'running' });
  await supervisor.remove('p');
});
