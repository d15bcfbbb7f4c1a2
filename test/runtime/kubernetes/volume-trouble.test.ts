import { expect, it } from 'vitest';
import { volumeProblem } from '../../../src/runtime/kubernetes/volume-trouble.ts';

const event = (message: string, type: 'Normal' | 'Warning' = 'Warning') => ({
  metadata: { name: 'event', uid: '1', resourceVersion: '1' },
  ...{ type, message },
});

it.each([
  ['storageclass.storage.k8s.io "gone" not found', 'internal_error'],
  ['no persistent volumes available for this claim and no storage class is set', 'internal_error'],
  ['rpc error: code = InvalidArgument desc = no such pool', 'internal_error'],
  ['rpc error: code = OutOfRange desc = too small', 'invalid_request'],
  ['rpc error: code = ResourceExhausted desc = full', 'capacity_exhausted'],
])('"%s" is not waited for: %s', (message, code) => {
  expect(volumeProblem([event('waiting for a volume', 'Normal'), event(message)])?.code).toBe(code);
});

it.each([
  [[]],
  [[event('rpc error: code = DeadlineExceeded desc = later')]],
  [[event('storageclass "x" not found', 'Normal')]],
])('what may still come is waited for', (events) => {
  expect(volumeProblem(events)).toBeNull();
});
