import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deletedRequest, storedHeaders, storedSignatures } from '../../src/webhook/deleted-request.ts';
import { standardWebhookHeaders, verify } from '../../src/webhook/signature.ts';

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

const SECRET = `whsec_${Buffer.from('a key made for this test').toString('base64')}`;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const FROM_MS = Date.UTC(2026, 0, 1) + 250;

describe('signatures made ahead', () => {
  it('are one for every four minutes of the window, counted from its begin', () => {
    const signatures = storedSignatures(SECRET, 'evt_1', '{}', FROM_MS, DAY_MS) ?? [];
    expect(signatures).toHaveLength(360);
    const first_s = Math.floor(FROM_MS / 1000);
    expect(signatures.map(([timestamp_s]) => timestamp_s - first_s)).toEqual(
      Array.from({ length: 360 }, (_, i) => i * 240),
    );
  });

  it('are what a signature made at that time would be, of the latest that has begun', () => {
    const signatures = storedSignatures(SECRET, 'evt_1', '{"a":1}', FROM_MS, DAY_MS) ?? [];
    fc.assert(
      fc.property(fc.integer({ min: 0, max: DAY_MS - 1 }), (after_ms) => {
        const now_ms = FROM_MS + after_ms;
        const headers = storedHeaders(signatures, 'evt_1', now_ms);
        const timestamp_s = Number(headers?.['webhook-timestamp']);
        expect(headers).toEqual(standardWebhookHeaders(SECRET, 'evt_1', timestamp_s, '{"a":1}'));
        const age_ms = now_ms - timestamp_s * 1000;
        expect(age_ms).toBeGreaterThanOrEqual(0);
        expect(age_ms).toBeLessThan(4 * MINUTE_MS + 1_000);
      }),
    );
  });

  it('are the first before the window and the last after it', () => {
    const signatures = storedSignatures(SECRET, 'evt_1', '{}', FROM_MS, DAY_MS) ?? [];
    const at = (now_ms: number) => storedHeaders(signatures, 'evt_1', now_ms)?.['webhook-signature'];
    expect(at(FROM_MS - MINUTE_MS)).toBe(signatures[0]?.[1]);
    expect(at(FROM_MS + 2 * DAY_MS)).toBe(signatures[359]?.[1]);
  });

  it.each(['', 'plain', 'whsec_'])('are none for the secret %j', (secret) => {
    expect(storedSignatures(secret, 'evt_1', '{}', FROM_MS, DAY_MS)).toBeNull();
  });
});
