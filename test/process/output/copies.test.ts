import { PassThrough, Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { outputOf, program, start } from '../../support/process/harness.ts';

test('a process that is requested again is not copied twice', async () => {
  const { supervisor } = await start();
  const stdout = new PassThrough();
  const texts: string[] = [];
  stdout.on('data', (data) => texts.push(String(data)));
  const request = { shell: 'echo once', process_id: 'p' };
  for (let i = 0; i < 3; i++) await supervisor.spawn(request, { copy_to: { stdout } });
  await supervisor.finished('p');
  expect(texts.join('')).toBe('once\n');
});

test('a target that takes nothing holds up the end of its process for two seconds', async () => {
  const clock = new ManualClock();
  const { supervisor } = await start({}, clock);
  const stdout = new PassThrough({ highWaterMark: 1 });
  await supervisor.spawn({ shell: 'seq 1 100000', process_id: 'p' }, { copy_to: { stdout } });
  let is_finished = false;
  const finished = supervisor.finished('p').then(() => {
    is_finished = true;
  });
  await supervisor.wait('p', { for: 'exit' });
  await clock.advance(1_999);
  expect(is_finished).toBe(false);
  await eventually(async () => {
    await clock.advance(1);
    expect(is_finished).toBe(true);
  });
  await finished;
  expect((await outputOf(supervisor, 'p')).stdout.endsWith('\n100000\n')).toBe(true);
});

test('both streams of a process are copied, to the end', async () => {
  const { supervisor } = await start();
  const stdout = new PassThrough();
  const texts: string[] = [];
  stdout.on('data', (data) => texts.push(String(data)));
  const { process } = await supervisor.spawn(
    { shell: 'echo out; echo err >&2; exit 9' },
    { copy_to: { stdout } },
  );
  expect(await supervisor.finished(process.process_id)).toMatchObject({ exit_code: 9 });
  expect(texts.join('').split('\n').sort()).toEqual(['', 'err', 'out']);
});

test('a target that takes nothing holds up neither the process nor its end for ever', async () => {
  const { supervisor } = await start();
  const stdout = new Writable({ highWaterMark: 1_024, write: () => {} });
  const { process } = await supervisor.spawn(
    { command: program('flood.mjs', String(20 * 1024 * 1024)) },
    { copy_to: { stdout } },
  );
  expect(await supervisor.finished(process.process_id)).toMatchObject({ exit_code: 0 });
  expect(stdout.writableLength).toBeLessThan(200 * 1024);
});

test('a target that breaks ends the copy alone', async () => {
  const { supervisor } = await start();
  const stdout = new Writable({ write: (_data, _encoding, done) => done(new Error('EPIPE')) });
  const { process } = await supervisor.spawn({ shell: 'seq 1 100000; exit 3' }, { copy_to: { stdout } });
  expect(await supervisor.finished(process.process_id)).toMatchObject({ exit_code: 3 });
});
