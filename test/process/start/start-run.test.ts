import { expect, test } from 'vitest';
import { outputOf, start, until } from '../../support/process/harness.ts';

test('200 starts at once all end and are all reported', async () => {
  const { supervisor, events } = await start();
  const started = await Promise.all(
    Array.from({ length: 200 }, (_, i) => supervisor.spawn({ shell: `echo ${i}; exit ${i % 7}` })),
  );
  const ended = await Promise.all(started.map(({ process }) => supervisor.finished(process.process_id)));
  expect(ended.map(({ exit_code }) => exit_code)).toEqual(started.map((_, i) => i % 7));
  await until(() => events.length === 400);
  for (const [i, { process }] of started.entries()) {
    expect((await outputOf(supervisor, process.process_id)).stdout).toBe(`${i}\n`);
  }
});
