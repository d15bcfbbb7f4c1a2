import { expect, test } from 'vitest';
import { parseProcessRequest } from '../../../src/process/start/parse-request.ts';

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
  [{ shell: 'a', env: { 'A\nB': 1 } }, 'env.A\nB'],
  [{ shell: 'a', env: { A: 'b\0' } }, 'env.A'],
  [{ shell: 'a', timeout_ms: 2 ** 53 }, 'timeout_ms'],
  [{ shell: 'a\0' }, 'shell'],
  [null, 'body'],
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

test.each([
  [{}, 'command: exactly one of command and shell is required'],
  [{ command: 'ls' }, 'command: must be an array of strings without NUL, of which the first is the program'],
  [{ shell: 1 }, 'shell: must be a non-empty string without NUL'],
  [{ shell: 'a', colour: 1 }, 'colour: unknown field'],
  [{ shell: 'a', process_id: '..' }, 'process_id: must be 1 to 128 of A-Z a-z 0-9 _ - . : and not . or ..'],
  [{ shell: 'a', env: { 'A=B': 'c' } }, 'env: names must be non-empty text without = and NUL'],
  [{ shell: 'a', restart: {} }, 'restart.policy: is required: one of never, on-failure, always'],
  [{ shell: 'a', stdin: 'file' }, 'stdin: must be one of pipe, ignore'],
  [{ shell: 'a', pty: { cols: 0, rows: 1 } }, 'pty.cols: must be an integer from 1 to 65535'],
  [{ shell: 'a', ready: { port: 1, log: 'a' } }, 'ready: exactly one of port and log is required'],
])('%j is refused in words', (body, message) => {
  expect(() => parseProcessRequest(body)).toThrow(message);
});
