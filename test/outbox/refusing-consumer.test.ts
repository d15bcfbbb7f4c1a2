import { expect, it } from 'vitest';
import { deliver } from '../support/outbox/delivery.ts';

const SECOND_MS = 1_000;
const MAX_RECORDS = 5;

it('beside a consumer that answers 401 to everything no publish is refused for an hour, and each event is sent', async () => {
  const { clock, store, transport, publish } = await deliver(() => 401, { max_records: MAX_RECORDS });
  const published: string[] = [];
  for (let second = 0; second < 3_600; second++) {
    published.push(...(await publish(1)));
    await clock.advance(SECOND_MS);
  }
  expect(published).not.toContain('');
  expect(transport.sent.map(({ event_id }) => event_id)).toEqual(published);
  expect(store.rows.counts()).toMatchObject({ pending: 0, failed: MAX_RECORDS });
  expect(store.rows.takeDropped()).toBe(published.length - MAX_RECORDS);
});
