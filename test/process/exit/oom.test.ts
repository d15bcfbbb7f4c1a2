import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { outputOf, start } from '../../support/process/harness.ts';

test('the kernel chooses a child before the daemon when memory runs out', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    shell: 'read x; cat /proc/self/oom_score_adj',
    stdin: 'pipe',
  });
  await eventually(async () =>
    expect((await readFile(`/proc/${process.pid}/oom_score_adj`, 'latin1')).trim()).not.toBe('0'),
  );
  await supervisor.writeStdin(process.process_id, { data: [], end: true });
  await supervisor.finished(process.process_id);
  expect(Number((await outputOf(supervisor, process.process_id)).stdout)).toBeGreaterThan(0);
});
