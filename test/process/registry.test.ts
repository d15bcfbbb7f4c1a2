import { expect, test } from 'vitest';
import { start, until } from '../support/process/harness.ts';

test('the same id with the same request is one process, and with another request a conflict', async () => {
  const { supervisor, events } = await start();
  const request = { command: ['sleep', '100'], env: { A: '1', B: '2' } };
  const [first, second] = await Promise.all([
    supervisor.spawn({ ...request, process_id: 'p' }),
    supervisor.spawn({ process_id: 'p', env: { B: '2', A: '1' }, command: ['sleep', '100'] }),
  ]);
  expect([first.created, second.created]).toEqual([true, false]);
  expect(second.process.pid).toBe(first.process.pid);
  await expect(supervisor.spawn({ command: ['true'], process_id: 'p' })).rejects.toMatchObject({
    code: 'conflict',
  });
  await until(() => events.length === 1);
});
