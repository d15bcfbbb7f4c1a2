import { expect, it } from 'vitest';
import { NoRuntime } from '../../src/runtime/no-runtime.ts';
import { spec } from '../support/runtime/sandboxes.ts';

it('a runtime without sandboxes lets every change succeed and keeps nothing', async () => {
  const runtime = new NoRuntime();
  await runtime.start();
  expect(await runtime.create(spec('sbx-1'))).toEqual({ pod_name: 'none-sbx-1', persistence: null });
  expect([await runtime.pause(), await runtime.resume(), await runtime.change()]).toEqual([
    'done',
    'done',
    'done',
  ]);
  expect(await runtime.fork('sbx-1', spec('sbx-2'))).toEqual({
    outcome: 'created',
    pod_name: 'none-sbx-2',
    persistence: null,
  });
  expect(await runtime.list()).toEqual([]);
  await expect(runtime.connect('sbx-1')).rejects.toMatchObject({ code: 'conflict' });
  expect(await runtime.end()).toEqual({ outcome: 'killed' });
  for await (const page of runtime.handOver()) expect.unreachable(JSON.stringify(page));
  await runtime.remove();
  // A recovery must not take a sandbox of the database for lost.
  expect([await runtime.inspect(), await runtime.liveness('sbx-9')]).toEqual(['untracked', 'alive']);
});
