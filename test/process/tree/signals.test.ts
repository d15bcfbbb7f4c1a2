import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { exitCodeOf, parseSignal } from '../../../src/process/tree/signals.ts';
import { eventually } from '../../support/eventually.ts';
import { outputOf, start } from '../../support/process/harness.ts';

test('a signal is named with or without SIG, in any case, or by its number', () => {
  for (const value of ['SIGTERM', 'term', 'Term', '15', 'SIG15']) expect(parseSignal(value)).toBe('SIGTERM');
  for (const value of ['RTMIN+3', 'sigrtmin+3', 'SIGRTMAX-27', '37'])
    expect(parseSignal(value)).toBe('SIGRTMIN+3');
  for (const value of ['RTMAX', 'SIGRTMIN+30', '64']) expect(parseSignal(value)).toBe('SIGRTMAX');
  // Two names of one signal: it is reported by the first.
  for (const value of ['SIGIOT', 'ABRT']) expect(parseSignal(value)).toBe('SIGABRT');
  expect(parseSignal('32')).toBe('SIG32');
});

test.each([
  'SIGNONE',
  '',
  15,
  null,
  '0',
  '65',
  '-9',
  '1e1',
  '9.0',
  ' 9',
  'RTMIN-1',
  'RTMIN+31',
  'RTMAX-31',
  'SIGSIGTERM',
  '__proto__',
])('%j is no signal', (value) => {
  expect(() => parseSignal(value)).toThrow('signal');
});

test('every number has the name that bash gives it, and is found again by it', () => {
  const { stdout } = spawnSync('bash', ['-c', 'for n in {1..64}; do echo $(kill -l $n); done'], {
    encoding: 'utf8',
  });
  for (const [index, said] of stdout.split('\n', 64).entries()) {
    const name = parseSignal(String(index + 1));
    // Two have no name.
    if (/[A-Z]/.test(said)) expect(parseSignal(said)).toBe(name);
    expect(exitCodeOf(null, name)).toBe(128 + index + 1);
  }
});

test('an end by a signal has the code of a shell', () => {
  expect([exitCodeOf(3, null), exitCodeOf(null, 'SIGKILL'), exitCodeOf(null, null)]).toEqual([3, 137, 0]);
});

test.each([
  ['37', 'SIGRTMIN+3', 165],
  ['RTMAX-2', 'SIGRTMAX-2', 190],
  ['SIGIOT', 'SIGABRT', 134],
])('an end by %s is reported under its name, as requested', async (asked, signal, exit_code) => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ command: ['sleep', '1000'] });
  supervisor.signal(process.process_id, asked);
  expect(await supervisor.finished(process.process_id)).toMatchObject({ state: 'exited', signal, exit_code });
});

test('an end by a real-time signal that nobody asked for is a crash', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ shell: 'kill -64 $$' });
  const ended = await supervisor.finished(process.process_id);
  expect(ended).toMatchObject({ state: 'crashed', signal: 'SIGRTMAX', exit_code: 192 });
});

test('a real-time signal reaches a process that handles it', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    command: [
      'bash',
      '-c',
      'trap "echo got; exit 0" RTMIN+3; echo on; while :; do read -t 0.05 <> <(:); done',
    ],
  });
  const said = async () => (await outputOf(supervisor, process.process_id)).stdout;
  await eventually(async () => expect(await said()).toBe('on\n'));
  supervisor.signal(process.process_id, 'SIGRTMIN+3');
  expect(await supervisor.finished(process.process_id)).toMatchObject({ state: 'exited', signal: null });
  expect(await said()).toBe('on\ngot\n');
});
