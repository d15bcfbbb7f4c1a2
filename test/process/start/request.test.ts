import fc from 'fast-check';
import { expect, test } from 'vitest';
import { commandOf, requestFingerprint } from '../../../src/process/start/request.ts';

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

test('the shell form is /bin/sh -c', () => {
  expect(commandOf({ shell: 'echo $A' })).toEqual(['/bin/sh', '-c', 'echo $A']);
});
