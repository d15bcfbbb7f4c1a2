import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { outputOf, start, until } from '../../support/process/harness.ts';

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
  await until(async () => {
    await clock.advance(1);
    return is_finished;
  });
  await finished;
  expect((await outputOf(supervisor, 'p')).stdout.endsWith('\n100000\n')).toBe(true);
});
