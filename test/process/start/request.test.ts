import fc from 'fast-check';
import { expect, test } from 'vitest';
import { commandOf, parseProcessRequest, requestFingerprint } from '../../../src/process/start/request.ts';

test.each([
  [[], 'body'],
  [{}, 'command'],
  [{ command: ['a'], shell: 'b' }, 'command'],
  [{ command: [] }, 'command'],
  [{ command: [''] }, 'command'],
  [{ command: ['a', 1] }, 'command'],
  [{ command: ['a\0b'] }, 'command'],
  [{ shell: '' }, 'shell'],
  [{ shell: 'a', colour: 1 }, 'colour'],
  [{ shell: 'a', process_id: '..' }, 'process_id'],
  [{ shell: 'a', process_id: 'a/b' }, 'process_id'],
  [{ shell: 'a', process_id: 'x'.repeat(129) }, 'process_id'],
  [{ shell: 'a', cwd: '' }, 'cwd'],
  [{ shell: 'a', user: 1 }, 'user'],
  [{ shell: 'a', env: { 'A=B': 'c' } }, 'env'],
  [{ shell: 'a', env: { A: 1 } }, 'env.A'],
  [{ shell: 'a', stdin: 'file' }, 'stdin'],
  [{ shell: 'a', timeout_ms: 0 }, 'timeout_ms'],
  [{ shell: 'a', timeout_ms: 1.5 }, 'timeout_ms'],
  [{ shell: 'a', restart: { policy: 'sometimes' } }, 'restart.policy'],
  [{ shell: 'a', restart: { policy: 'always', max_restarts: -1 } }, 'restart.max_restarts'],
  [{ shell: 'a', restart: { policy: 'always', delay: 1 } }, 'restart.delay'],
  [{ shell: 'a', pty: { cols: 0, rows: 1 } }, 'pty.cols'],
  [{ shell: 'a', pty: { cols: 1, rows: 1, depth: 1 } }, 'pty.depth'],
  [{ shell: 'a', ready: {} }, 'ready'],
  [{ shell: 'a', ready: { port: 65_536 } }, 'ready.port'],
  [{ shell: 'a', ready: { log: '' } }, 'ready.log'],
])('%j is refused with the field named', (body, field) => {
  expect(() => parseProcessRequest(body)).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: { field } }),
  );
});

test('a whole request is taken as it is', () => {
  const request = {
    command: ['node', 'x.js'],
    process_id: 'a-Z_0.9:x',
    cwd: '/',
    env: { A: '' },
    user: 'me',
    name: 'n',
    stdin: 'pipe',
    timeout_ms: 1,
    restart: { policy: 'always', max_restarts: 0, backoff_ms: 0 },
    pty: { cols: 80, rows: 24 },
    ready: { port: 80 },
  };
  expect(parseProcessRequest(request)).toEqual(request);
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

test('the shell form is /bin/sh -c', () => {
  expect(commandOf({ shell: 'echo $A' })).toEqual(['/bin/sh', '-c', 'echo $A']);
});
