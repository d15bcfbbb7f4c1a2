import { expect, it } from 'vitest';
import { deletedRequest } from '../../src/webhook/deleted-request.ts';
import { verify } from '../../src/webhook/signature.ts';

const DELETION = {
  event_id: 'evt_1',
  sandbox_id: 'sb_1',
  team_id: 'team "one"',
  reason: 'api',
  actor: 'tok_1',
  happened_at_ms: Date.UTC(2026, 0, 1),
};

it('is the whole request: body without a sequence, static headers, one signature over the body', () => {
  const { headers, body, signatures } = deletedRequest(DELETION, 'a secret made for this test');
  expect(JSON.parse(body)).toEqual({
    event_id: 'evt_1',
    event_type: 'sandbox.deleted',
    timestamp: '2026-01-01T00:00:00.000Z',
    sandbox_id: 'sb_1',
    team_id: 'team "one"',
    payload: { reason: 'api', actor: 'tok_1' },
  });
  expect(verify('a secret made for this test', body, headers['X-Service-Signature'])).toBe(true);
  expect(headers).not.toHaveProperty('ce-sequence');
  expect(signatures).toBeNull();
});

it('is not signed without a secret', () => {
  const { headers, signatures } = deletedRequest(DELETION, '');
  expect(headers).not.toHaveProperty('X-Service-Signature');
  expect(signatures).toBeNull();
});
