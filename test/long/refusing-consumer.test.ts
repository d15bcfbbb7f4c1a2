import { expect, it } from 'vitest';
import { inParallel } from '../../src/base/in-parallel.ts';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { startSandboxd } from '../support/sandboxd-program.ts';
import { longSized } from './support/size.ts';

const RECORDS = 20_000;
const MAX_RECORDS = 2_000;
const AT_ONCE = 32;

it('beside a consumer that answers 401 to everything no publish is refused, and none slower for what has failed', async () => {
  const consumer = await startConsumer();
  consumer.answer = (_, response) => response.writeHead(401).end();
  const daemon = await startSandboxd([
    '--webhook-url',
    consumer.url,
    '--outbox-max-records',
    `${MAX_RECORDS}`,
  ]);
  const published = new Set<string>();
  const outbox = async () => (await daemon.call('GET', '/api/v1/sandbox')).data.outbox;
  /** Publishes a part of all, each as soon as the delivery leaves room for it; resolves to how long it took, in ms. */
  const publish = async (part: number): Promise<number> => {
    const started_ms = performance.now();
    await inParallel(Array.from({ length: longSized(RECORDS * part) }), AT_ONCE, async () => {
      const { status, data } = await daemon.call('POST', '/api/v1/webhook/publish', { payload: {} });
      expect(status).toBe(202);
      published.add(data.event_id);
    });
    return performance.now() - started_ms;
  };
  const empty_ms = await publish(0.05);
  await publish(0.9);
  const full_ms = await publish(0.05);
  await eventually(async () => expect((await outbox()).pending).toBe(0), { timeout: 60_000 });
  const { failed, expired } = await outbox();
  const sent = new Set(consumer.deliveries.map(({ event }) => event.event_id));
  expect([...published].filter((event_id) => !sent.has(event_id))).toEqual([]);
  expect(failed + expired).toBe(MAX_RECORDS);
  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  const dropped = Number(/^sandboxd_records_dropped_total (\d+)$/m.exec(metrics)?.[1]);
  expect(dropped).toBe(sent.size - MAX_RECORDS);
  expect(daemon.log.filter(({ msg }) => msg.includes('make room'))).toHaveLength(1);
  console.log({ published: published.size, dropped, empty_ms, full_ms });
  expect(full_ms).toBeLessThan(3 * empty_ms + 1_000);
}, 600_000);
