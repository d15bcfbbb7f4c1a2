import { expect, it } from 'vitest';
import { SandboxdError, type SandboxdErrorCode } from '../../../src/client/error.ts';
import { mayPass } from '../../../src/client/streams/reconnect.ts';

const failed = (code: SandboxdErrorCode, status: number, details?: unknown) =>
  new SandboxdError({ code, status, details, message: code });

it('a stream is opened again where that may help, and never for a sandbox that is gone for good', () => {
  const passing = [
    failed('unreachable', 0),
    failed('too_many_requests', 429),
    failed('unavailable', 503),
    failed('conflict', 409),
    failed('conflict', 409, { status: 'paused' }),
    failed('conflict', 409, { status: 'starting' }),
  ];
  expect(passing.map(mayPass)).toEqual(passing.map(() => true));
  const lasting = [
    ...['terminating', 'failed', 'deleted'].map((status) => failed('conflict', 409, { status })),
    failed('not_found', 404),
    failed('unauthorized', 401),
    failed('internal_error', 500),
    new Error('something else'),
  ];
  expect(lasting.map(mayPass)).toEqual(lasting.map(() => false));
});
