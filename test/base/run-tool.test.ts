import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runTool, startTool, toolProblem } from '../../src/base/run-tool.ts';
import { scratchFolder } from '../support/scratch.ts';

test('a tool is given its input and nothing of this environment', async () => {
  expect(await runTool(['cat'], { stdin: 'a\nb\n' })).toBe('a\nb\n');
  expect(await runTool(['cat'])).toBe('');
  expect((await runTool(['env'])).split('\n').sort()).toEqual([
    '',
    'LC_ALL=C',
    'PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin',
  ]);
  expect(await runTool(['pwd', '-P'])).toBe(`${process.cwd()}\n`);
});

test('a tool that fails tells the first line that it wrote, or how it ended', async () => {
  const script = 'echo "no such thing" >&2; echo more >&2; exit 3';
  await expect(runTool(['sh'], { stdin: script })).rejects.toMatchObject({
    message: 'sh: no such thing',
    stderr: 'no such thing\nmore\n',
  });
  expect(await toolProblem('sh', '-c', script)).toBe('no such thing');
  expect(await toolProblem('sh', '-c', 'exit 3')).toBe('sh exited with 3');
  expect(await toolProblem('sh', '-c', 'kill -9 $$')).toBe('sh exited with SIGKILL');
  expect(await toolProblem('true')).toBe(null);
});

test('a tool that is not there or cannot be run is named', async () => {
  await expect(runTool(['no-such-program'], { stdin: 'x' })).rejects.toThrow(
    'no-such-program is not installed',
  );
  expect(await toolProblem('no-such-program')).toBe('no-such-program is not installed');
  const file = join(scratchFolder(), 'no-program');
  writeFileSync(file, 'x');
  expect(await toolProblem(file)).toBe(`${file} cannot be started: EACCES`);
});

test('a tool that reads no input is no harm', async () => {
  expect(await runTool(['true'], { stdin: 'x'.repeat(1_000_000) })).toBe('');
});

test('a tool that takes too long is ended, also while what it has started holds its pipes', async () => {
  const script = 'sleep 60 & echo $!; wait';
  const began_ms = performance.now();
  await expect(runTool(['sh', '-c', script], { timeout_ms: 200 })).rejects.toThrow('sh takes too long');
  expect(performance.now() - began_ms).toBeLessThan(5_000);
});

test('a program that a tool leaves behind does not hold it up', async () => {
  const began_ms = performance.now();
  const pid = Number(await runTool(['sh', '-c', 'sleep 60 & echo $!']));
  expect(performance.now() - began_ms).toBeLessThan(5_000);
  process.kill(pid, 'SIGKILL');
});

test('output and messages are bounded', async () => {
  await expect(runTool(['head', '-c', '20M', '/dev/zero'])).rejects.toThrow(
    'head: its output is longer than 16 MiB',
  );
  const tool = await startTool(
    ['sh', '-c', 'echo first >&2; yes | head -c 20M >&2; exit 1'],
    ['ignore', 'ignore', 'pipe'],
  );
  expect(await tool.problem).toBe('first');
  expect(tool.said()).toHaveLength(64 * 1024);
});
