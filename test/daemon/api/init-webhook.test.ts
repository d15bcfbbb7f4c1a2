import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startConsumer } from '../../support/consumer.ts';
import { startDaemon } from '../../support/daemon/running-daemon.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** A daemon in this process, initialised with this webhook. */
async function limitedTo(webhook: object) {
  const consumer = await startConsumer();
  const daemon = await startDaemon('--await-init');
  const body = JSON.stringify({ sandbox_id: 's', team_id: 't', webhook: { url: consumer.url, ...webhook } });
  const init = await daemon.call('POST', '/api/v1/sandbox/init', { body });
  const deliveries = async (): Promise<{ event_type: string; sequence: number }[]> =>
    (await daemon.call('GET', '/api/v1/webhook/deliveries')).json.data.deliveries.toReversed();
  return { consumer, daemon, init, deliveries };
}

describe('an init with webhook.events', () => {
  it('sends these kinds and no other, in sequences without a gap', async () => {
    const { consumer, daemon, deliveries } = await limitedTo({
      events: ['agent.event', 'process.exited', 'sandbox.resumed', 'sandbox.deleted'],
      watch_dir: scratchFolder(),
    });
    expect((await daemon.publish('{}')).json.data.sequence).toBe(1);
    const body = JSON.stringify({ command: ['true'] });
    await daemon.call('POST', '/api/v1/processes?wait_ms=20000', { body });
    await daemon.call('POST', '/api/v1/sandbox/pause');
    await daemon.call('POST', '/api/v1/sandbox/resume');
    await consumer.arrival('process.exited');
    expect((await daemon.publish('{}')).json.data.sequence).toBe(4);
    await consumer.arrival('agent.event', 2);
    const sent = [
      ['agent.event', 1],
      ['process.exited', 2],
      ['sandbox.resumed', 3],
      ['agent.event', 4],
    ];
    await expect.poll(() => consumer.deliveries.length).toBe(4);
    const got = consumer.deliveries.map(({ event }) => [event.event_type, event.sequence]);
    expect(got.toSorted(([, a], [, b]) => Number(a) - Number(b))).toEqual(sent);
    expect((await deliveries()).map(({ event_type, sequence }) => [event_type, sequence])).toEqual(sent);
    // What is not sent is not watched.
    expect((await daemon.call('GET', '/api/v1/sandbox')).json.data.watcher).toBeNull();
  });

  it('answers a publish with 409 where agent.event is not among them, and stores nothing', async () => {
    const { daemon, deliveries } = await limitedTo({ events: ['sandbox.deleted'] });
    for (const refused of [await daemon.publish('{}'), await daemon.call('POST', '/api/v1/webhook/test')]) {
      expect([refused.status, refused.json.error.code]).toEqual([409, 'webhook_not_configured']);
      expect(refused.json.error.message).toContain('agent.event');
    }
    expect(await deliveries()).toEqual([]);
  });
});

describe('an init with webhook.retry', () => {
  it.each([
    ['any', 'pending'],
    ['transient', 'failed'],
  ])('%s: an event that is answered 401 is %s', async (retry, state) => {
    const { consumer, daemon } = await limitedTo({ retry });
    consumer.answer = (_, response) => response.writeHead(401).end();
    const { event_id } = (await daemon.publish('{}')).json.data;
    const path = `/api/v1/webhook/deliveries/${event_id}`;
    await expect
      .poll(async () => (await daemon.call('GET', path)).json.data)
      .toMatchObject({ last_status: 401, state });
  });
});

describe('an init with webhook.watch_ignore', () => {
  it('leaves out what matches', async () => {
    const watch_dir = scratchFolder();
    const { consumer } = await limitedTo({ watch_dir, watch_ignore: ['*.log', 'deep'] });
    mkdirSync(join(watch_dir, 'deep'));
    for (const name of ['a.log', 'deep/b', 'last']) writeFileSync(join(watch_dir, name), '');
    await consumer.arrival('file.modified');
    const paths = consumer.of('file.modified').map(({ event }) => event.payload.path);
    expect(new Set(paths)).toEqual(new Set([join(watch_dir, 'last')]));
  });
});

describe('an init with a bad limit of its webhook', () => {
  it.each([
    ['webhook.events', { events: ['agent.events'] }],
    ['webhook.events', { events: [] }],
    ['webhook.retry', { retry: 'all' }],
    ['webhook.watch_ignore', { watch_ignore: ['/'] }],
    ['webhook.watch_ignore', { watch_ignore: Array(101).fill('a') }],
  ])('is refused by its field: %s %j', async (field, webhook) => {
    const { init } = await limitedTo(webhook);
    expect([init.status, init.json.error.details]).toEqual([400, { field }]);
  });
});
