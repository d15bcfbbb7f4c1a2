import { join } from 'node:path';
import { type CloudEvent, HTTP } from 'cloudevents';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { parse, verify } from '../../src/receiver/events.ts';
import { type Delivery, startConsumer } from '../support/consumer.ts';
import { startDelivering } from '../support/daemon/running-daemon.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { scratchFolder } from '../support/scratch.ts';

const SECRET = 'whsec_c2VjcmV0LWtleS1vZi10aGUtdGVhbQ==';

/** Checks that others' consumers, and ours, take a delivery. */
async function expectTaken({ headers, body, event }: Delivery, sandbox_id: string): Promise<void> {
  const cloud_event = HTTP.toEvent({ headers, body }) as CloudEvent<unknown>;
  expect(cloud_event).toMatchObject({
    specversion: '1.0',
    id: event.event_id,
    source: `/sandboxes/${sandbox_id}`,
    type: event.event_type,
    time: JSON.parse(body).timestamp,
    datacontenttype: 'application/json',
    data: JSON.parse(body),
  });
  expect(cloud_event.sequence).toBe(event.sequence === undefined ? undefined : String(event.sequence));
  expect(cloud_event.validate()).toBe(true);

  const webhook = new Webhook(SECRET);
  expect(webhook.verify(body, headers as Record<string, string>)).toEqual(JSON.parse(body));
  expect(() => webhook.verify(`${body} `, headers as Record<string, string>)).toThrow();

  expect(await verify(body, headers, SECRET)).toBe(true);
  const { 'x-service-signature': own, ...standard } = headers;
  expect(await verify(body, { 'x-service-signature': own }, SECRET)).toBe(true);
  expect(await verify(body, standard, SECRET)).toBe(true);
  expect(parse(body)).toEqual(JSON.parse(body));
}

describe('a CloudEvent, a Standard Webhook, and an event to those who are made for them', () => {
  it('is what a daemon sends', async () => {
    const { consumer, publish } = await startDelivering('--webhook-secret', SECRET);
    await publish('{"text":"Grüße \\u2028 🌍","number":1.5}');
    await consumer.arrival('agent.event');
    await consumer.arrival('sandbox.ready');
    for (const delivery of consumer.deliveries) await expectTaken(delivery, 'sb-1');
  });

  it('is what a manager sends of a deletion', async () => {
    const consumer = await startConsumer();
    const options = { allow_webhook_cidr: ['127.0.0.0/8'] };
    const { client } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, { options });
    const team = await client('team_1', 'sandboxes:write');
    const id = await team.claim({ webhook: { url: consumer.url, secret: SECRET } });
    await team.call('DELETE', `/api/v1/sandboxes/${id}`);
    await expectTaken(await consumer.arrival('sandbox.deleted'), id);
  });
});
