import fc from 'fast-check';
import { expect, test } from 'vitest';
import { requestFingerprint } from '../../src/process/record.ts';
import { eventually } from '../support/eventually.ts';
import { start } from '../support/process/harness.ts';

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
  await eventually(() => expect(events).toHaveLength(1));
});

test('two requests are the same whatever the order of their keys and whatever their id', () => {
  const request = { shell: 'a', env: { A: '1', B: '2' }, cwd: '/' };
  expect(requestFingerprint({ ...request, process_id: 'x' })).toBe(
    requestFingerprint({ cwd: '/', env: { B: '2', A: '1' }, shell: 'a' }),
  );
  expect(requestFingerprint(request)).not.toBe(requestFingerprint({ ...request, env: { A: '2', B: '1' } }));
});

test('any two different commands have different fingerprints', () => {
  const argv = fc.array(fc.string({ minLength: 1 }), { minLength: 1 });
  fc.assert(
    fc.property(argv, argv, (a, b) => {
      const is_same = JSON.stringify(a) === JSON.stringify(b);
      expect(requestFingerprint({ command: a }) === requestFingerprint({ command: b })).toBe(is_same);
    }),
  );
});
