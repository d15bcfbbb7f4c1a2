import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { standardWebhookHeaders } from '../../src/webhook/signature.ts';
import { startConsumer } from '../support/consumer.ts';
import { startDaemon } from '../support/daemon/running-daemon.ts';
import { eventually } from '../support/eventually.ts';
import { isInstalled, LANGUAGES, type Receiver, startReceiver } from '../support/receivers/receiver.ts';

const WHSEC = 'whsec_a2V5IG1hZGUgZm9yIHRoaXMgdGVzdA==';
const OTHER = 'whsec_YW5vdGhlciBrZXk=';
/** A payload that does not survive being parsed and printed again. */
const PAYLOAD = '{ "price": 1.10, "huge": 12345678901234567890, "text": "Grüße \\u00e9 🌍" }';

/** What a real daemon sends. */
let sent: { headers: Record<string, string>; body: string; event_id: string };

describe('what a daemon sends with a secret of Standard Webhooks', () => {
  it('is the same body under both signatures', async () => {
    const consumer = await startConsumer();
    const { publish } = await startDaemon('--webhook-url', consumer.url, '--webhook-secret', WHSEC);
    await publish(PAYLOAD);
    const { headers, body, event } = await consumer.arrival('agent.event');
    const kept = Object.entries(headers).filter(([name]) =>
      /^(content-type|webhook-|ce-|x-service-)/.test(name),
    );
    sent = { headers: Object.fromEntries(kept) as Record<string, string>, body, event_id: event.event_id };
    expect(sent.headers).toMatchObject({ 'webhook-id': event.event_id, 'x-service-signature': /./ });
  });
});

for (const language of LANGUAGES) {
  const is_there = isInstalled(language);
  const title = is_there ? '' : ' (skipped: it is not installed here)';

  describe.skipIf(!is_there)(`the receiver in ${language.name}, with a whsec_ secret${title}`, () => {
    let receiver: Receiver;

    beforeAll(async () => {
      receiver = await startReceiver(language, WHSEC);
    }, 120_000);

    afterAll(() => receiver?.stop());

    async function send(body: string, headers: Record<string, string>): Promise<number> {
      return (await fetch(receiver.url, { method: 'POST', headers, body })).status;
    }

    /** The headers as they would be, had the attempt been made then. */
    const signed = (age_s: number, secret = WHSEC) => ({
      ...sent.headers,
      ...standardWebhookHeaders(secret, sent.event_id, Math.floor(Date.now() / 1000) - age_s, sent.body),
    });

    it('refuses a changed body, another key, an old or future attempt, and a signature that is none', async () => {
      const { headers, body } = sent;
      const { 'webhook-signature': signature = '', 'webhook-timestamp': time, ...without } = headers;
      expect(await send(body.replace('1.10', '9.10'), headers)).toBe(401);
      expect(await send(JSON.stringify(JSON.parse(body)), headers)).toBe(401);
      expect(await send(body, signed(0, OTHER))).toBe(401);
      expect(await send(body, signed(3600))).toBe(401);
      expect(await send(body, signed(-3600))).toBe(401);
      expect(await send(body, without)).toBe(401);
      expect(await send(body, { ...headers, 'webhook-id': 'evt_another' })).toBe(401);
      for (const given of ['', 'v1', 'v1,', 'v2,x', 'ÿ'.repeat(40), signature.replace('v1', 'v2')]) {
        expect(await send(body, { ...headers, 'webhook-signature': given }), given).toBe(401);
      }
      for (const given of ['', 'x', '1e400', '-1', '9'.repeat(400)]) {
        expect(await send(body, { ...headers, 'webhook-timestamp': given }), given).toBe(401);
      }
      expect(receiver.printed()).not.toContain(sent.event_id);
    });

    it('records what the daemon sent, its very bytes, once', async () => {
      expect(await send(sent.body, sent.headers)).toBe(204);
      expect(await send(sent.body, signed(60))).toBe(204);
      const both = `v1,bm9uZQ== ${signed(0)['webhook-signature']}`;
      expect(await send(sent.body, { ...signed(0), 'webhook-signature': both })).toBe(204);
      await eventually(() => expect(receiver.printed()).toContain(`${sent.body}\n`));
      expect(receiver.printed().split(sent.event_id)).toHaveLength(2);
    });
  });
}
