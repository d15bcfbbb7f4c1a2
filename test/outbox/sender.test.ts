import { describe, expect, it } from 'vitest';
import { deliver, inTurn } from '../support/outbox/delivery.ts';

describe('retries', () => {
  it('carry the number of the attempt, the same headers and the same bytes', async () => {
    const { clock, transport, publish } = await deliver(inTurn(500, 'reset', 200), {
      secret: 'made for this test',
    });
    await publish(1);
    await clock.advance(5_000);
    expect(transport.sent.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    const fixed = transport.sent.map(({ request }) => ({
      ...request,
      headers: { ...request.headers, 'X-Service-Attempt': '' },
    }));
    expect(fixed[1]).toEqual(fixed[0]);
    expect(fixed[2]).toEqual(fixed[0]);
  });

  it('sign each attempt anew for Standard Webhooks where the secret is of that kind', async () => {
    const { clock, transport, publish } = await deliver(inTurn(500, 200), {
      secret: `whsec_${Buffer.from('made for this test').toString('base64')}`,
    });
    await publish(1);
    await clock.advance(5_000);
    const [first, second] = transport.sent.map(({ request }) => request.headers);
    expect(first?.['webhook-id']).toBe(transport.sent[0]?.event_id);
    expect(second?.['webhook-signature']).toMatch(/^v1,/);
    expect(Number(second?.['webhook-timestamp'])).toBeGreaterThanOrEqual(
      Number(first?.['webhook-timestamp']),
    );
    expect(second?.['X-Service-Signature']).toBe(first?.['X-Service-Signature']);
  });
});
