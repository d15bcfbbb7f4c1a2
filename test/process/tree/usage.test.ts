import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { listOf, start } from '../../support/process/harness.ts';

test('resource usage counts a whole tree, and all trees together', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ shell: 'sleep 1000 & sleep 1000 & wait' });
  const { resource_usage } = await eventually(async () => {
    const view = await supervisor.get(process.process_id);
    expect(view.resource_usage.processes).toBe(3);
    return view;
  });
  expect(resource_usage.memory_bytes).toBeGreaterThan(100_000);
  await supervisor.spawn({ command: ['sleep', '1000'] });
  expect((await supervisor.usage()).processes).toBe(4);
  expect((await listOf(supervisor)).map((view) => view.resource_usage.processes)).toEqual([3, 1]);
});
