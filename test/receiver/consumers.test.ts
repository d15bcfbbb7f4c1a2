import { type CloudEvent, HTTP } from 'cloudevents';
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { parse, verify } from '../../src/receiver/events.ts';
import { startDelivering } from '../support/daemon/running-daemon.ts';

const SECRET = 'whsec_c2VjcmV0LWtleS1vZi10aGUtdGVhbQ==';

it('what a daemon sends is a CloudEvent, a Standard Webhook, and an event to those who are made for them', async () => {
  const { consumer, publish } = await startDelivering('--webhook-secret', SECRET);
  await publish('{"text":"Grüße \\u2028 🌍","number":1.5}');
  const delivery = await consumer.arrival('agent.event');
  await consumer.arrival('sandbox.ready');
  for (const { headers, body, event } of consumer.deliveries) {
    const cloud_event = HTTP.toEvent({ headers, body }) as CloudEvent<unknown>;
    expect(cloud_event).toMatchObject({
      specversion: '1.0',
      id: event.event_id,
      source: '/sandboxes/sb-1',
      type: event.event_type,
      time: JSON.parse(body).timestamp,
      sequence: String(event.sequence),
      datacontenttype: 'application/json',
      data: JSON.parse(body),
    });
    expect(cloud_event.validate()).toBe(true);

    expect(new Webhook(SECRET).verify(body, headers as Record<string, string>)).toEqual(JSON.parse(body));
    expect(() => new Webhook(SECRET).verify(`${body} `, headers as Record<string, string>)).toThrow();

    expect(await verify(body, headers, SECRET)).toBe(true);
    expect(parse(body)).toEqual(JSON.parse(body));
  }
  const { 'x-service-signature': _, ...without_own } = delivery.headers;
  expect(await verify(delivery.body, without_own, SECRET)).toBe(true);
});
