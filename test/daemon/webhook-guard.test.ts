import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { requestDaemon } from '../../src/runtime/control-client.ts';
import { type Consumer, startConsumer } from '../support/consumer.ts';
import { launch } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

/** A daemon that takes its identity from this body; resolves with what its init and its first delivery came to. */
async function initialised(webhook: object): Promise<{ init: unknown; first: () => Promise<unknown> }> {
  const socket = join(scratchFolder(), 'control.sock');
  const daemon = launch(['--await-init', '--control-socket', socket]);
  await daemon.logged('listening');
  const body = { sandbox_id: 'sbx_1', team_id: 't', webhook };
  const init = await requestDaemon(socket, {
    method: 'POST',
    path: '/sandbox/init',
    body,
    within_ms: 20_000,
  });
  const get = async (path: string) => {
    const answer = await requestDaemon(socket, { method: 'GET', path, within_ms: 20_000 });
    return (answer.outcome === 'answered' ? answer.data : {}) as Record<string, object[]>;
  };
  /** How the first attempt at the first event ended. */
  const first = async () => {
    const [delivery] = (await get('/webhook/deliveries')).deliveries as { event_id: string }[];
    return delivery && (await get(`/webhook/deliveries/${delivery.event_id}`)).attempts?.[0];
  };
  return { init, first };
}

const at = (consumer: Consumer, host: string) => `http://${host}:${new URL(consumer.url).port}/`;
const BLOCKED = { attempt: 1, error: 'blocked', status: null };

describe('a daemon that is told which addresses its webhook may lead to', () => {
  it.each(['127.0.0.1', 'localhost', 'any.localhost.', '[::ffff:127.0.0.1]', '[64:ff9b::7f00:1]', '0.0.0.0'])(
    'delivers nothing to %s, which is this machine',
    async (host) => {
      const consumer = await startConsumer();
      const { first } = await initialised({ url: at(consumer, host), allow_cidrs: ['10.0.0.0/8'] });
      await expect.poll(first, { timeout: 20_000 }).toMatchObject(BLOCKED);
      expect(consumer.deliveries).toEqual([]);
    },
  );

  it('delivers to what is listed, and anywhere where nothing is said', async () => {
    const consumer = await startConsumer();
    for (const given of [{ allow_cidrs: ['127.0.0.0/8', 'fd00::/8'] }, {}]) {
      const { first } = await initialised({ url: at(consumer, 'localhost'), ...given });
      await expect.poll(first, { timeout: 20_000 }).toMatchObject({ attempt: 1, status: 204 });
    }
  });

  it('names a range that is none', async () => {
    const { init } = await initialised({ url: 'http://example.com/', allow_cidrs: ['10.0.0.0/33'] });
    expect(init).toMatchObject({
      status: 400,
      error: { code: 'invalid_request', details: { field: 'webhook.allow_cidrs' } },
    });
  });
});
