import { describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../../src/contract/errors.ts';
import { namedMessage } from '../../../src/ctl/api/named-error.ts';

const S = '/api/v1/sandboxes/sbx_1';

describe('the message of an error', () => {
  it.each<[string, string, string, unknown?, ErrorCode?]>([
    [S, 'There is no such sandbox.', 'sbx_1: There is no such sandbox.'],
    [`${S}/pause`, 'The node is full.', 'sbx_1: The node is full.'],
    [`${S}/processes`, 'There is no such sandbox.', 'sbx_1: There is no such sandbox.'],
    [`${S}/processes/proc_1/output`, 'There is no such sandbox.', 'sbx_1: There is no such sandbox.'],
    [`${S}/processes/proc_1/output`, 'It has ended.', 'proc_1: It has ended.'],
    ['/api/v1/processes/a%20b', 'There is no process a b.', 'There is no process a b.'],
    ['/api/v1/webhook/deliveries/evt_1/replay', 'Not found.', 'evt_1: Not found.'],
    ['/api/v1/quotas/cpu', 'Not found.', 'cpu: Not found.'],
    [`${S}/files`, 'Not found.', '/a: Not found.', { path: '/a' }],
    [`${S}/files`, 'Too slow.', 'Too slow.'],
    ['/api/v1/processes', 'The request is invalid.', 'The request is invalid.'],
    ['/api/v1/processes/%ff', 'Not found.', '%ff: Not found.'],
    ['/api/v1/processes/p', 'No rights.', 'No rights.', null, 'forbidden'],
  ])('of %s: %s', (path, message, expected, details = null, code = 'not_found') => {
    expect(namedMessage({ code, message, details }, path)).toBe(expected);
  });
});
