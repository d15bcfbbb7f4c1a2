import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { StartError } from '../../src/contract/errors.ts';
import { startConsumer } from '../support/consumer.ts';
import { createDaemon, startDaemon, startDelivering } from '../support/daemon/running-daemon.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { scratchFolder } from '../support/scratch.ts';

const INIT = '/api/v1/sandbox/init';

/** Whether anybody listens on a port of this machine. */
function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

describe('the end of a daemon', () => {
  it('stops processes before the watch, and tells last of all that the sandbox has ended', async () => {
    const work = join(scratchFolder(), 'work');
    mkdirSync(work);
    const { daemon, consumer, call } = await startDelivering(
      '--watch-dir',
      work,
      '--shutdown-grace-ms',
      '20000',
    );
    // Ends only once the test has seen what it writes at its end.
    const seen = join(scratchFolder(), 'seen');
    const last_words = `echo bye > ${work}/last-words; until [ -e ${seen} ]; do sleep 0.05; done; exit 0`;
    const shell = `trap '${last_words}' TERM; echo up; while :; do sleep 0.05; done`;
    const body = JSON.stringify({ shell, process_id: 'p', ready: { log: 'up' } });
    expect((await call('POST', '/api/v1/processes', { body })).status).toBe(201);
    expect((await call('GET', '/api/v1/processes/p/wait?for=ready')).status).toBe(200);
    await eventually(async () => {
      expect((await call('GET', '/api/v1/sandbox')).json.data.watcher.state).toBe('watching');
    }, 120_000);
    const stopped = daemon.stop('signal', 'SIGTERM');
    await eventually(() => {
      const paths = consumer.of('file.modified').map(({ event }) => event.payload.path);
      expect(paths).toContain(join(work, 'last-words'));
    }, 120_000);
    expect(consumer.types).not.toContain('process.exited');
    writeFileSync(seen, '');
    await stopped;
    const events = consumer.deliveries.map(({ event }) => event).sort((a, b) => a.sequence - b.sequence);
    expect(events.map(({ event_type }) => event_type)).toContain('process.exited');
    expect(events.at(-1)).toMatchObject({
      event_type: 'sandbox.killed',
      payload: { reason: 'signal', signal: 'SIGTERM' },
    });
  });

  it('is one, however often it is asked for, and leaves nothing that listens', async () => {
    const onStopped = vi.fn();
    const { daemon, port } = await startDaemon();
    daemon.onStopped = onStopped;
    await Promise.all([daemon.stop('signal', 'SIGTERM'), daemon.stop('signal', 'SIGINT')]);
    expect(onStopped).toHaveBeenCalledTimes(1);
    expect([daemon.state, await isFree(port)]).toEqual(['stopping', true]);
  });

  it('waits for an init that is under way, and stops what it has started', async () => {
    const consumer = await startConsumer();
    const { daemon, call } = await startDaemon('--await-init', '--shutdown-grace-ms', '20000');
    const body = JSON.stringify({ sandbox_id: 's', team_id: 't', webhook: { url: consumer.url } });
    const initialised = call('POST', INIT, { body }).catch(() => null);
    await eventually(async () => {
      const { data } = (await call('GET', '/api/v1/sandbox')).json;
      expect(data.sandbox_id).toBe('s');
    }, 120_000);
    await Promise.all([daemon.stop('signal', 'SIGTERM'), initialised]);
    expect(consumer.types).toEqual(['sandbox.ready', 'sandbox.killed']);
  });

  it('waits for no delivery once it is hurried', async () => {
    const { daemon, consumer, publish } = await startDelivering('--shutdown-grace-ms', '3600000');
    consumer.answer = () => {};
    await publish('{}');
    await consumer.arrival('agent.event');
    const stopped = daemon.stop('signal', 'SIGTERM');
    await daemon.hurry();
    await stopped;
    expect(daemon.state).toBe('stopping');
  });
});

describe('a start that fails', () => {
  it('leaves nothing behind when it is abandoned', async () => {
    const state_dir = join(scratchFolder(), 'state');
    const port = await freePort();
    const watch_dir = join(state_dir, 'inside');
    const daemon = createDaemon(state_dir, '--port', String(port), '--watch-dir', watch_dir);
    await expect(daemon.start()).rejects.toThrow(StartError);
    await daemon.abandon();
    expect(await isFree(port)).toBe(true);
    const next = createDaemon(state_dir, '--port', String(port));
    onTestFinished(() => next.stop('signal', 'SIGTERM'));
    await next.start();
    expect(next.state).toBe('running');
  });
});

describe('an init that fails', () => {
  it('leaves nothing running, and the next one starts the sandbox as if it were the first', async () => {
    const consumer = await startConsumer();
    const { call, publish, state_dir } = await startDaemon('--await-init');
    const init = (watch_dir?: string) => {
      const webhook = { url: consumer.url, ...(watch_dir === undefined ? {} : { watch_dir }) };
      return call('POST', INIT, { body: JSON.stringify({ sandbox_id: 's', team_id: 't', webhook }) });
    };
    const refused = await init(join(state_dir, 'inside'));
    expect(refused).toMatchObject({
      status: 400,
      json: { error: { code: 'invalid_request', details: { field: 'webhook.watch_dir' } } },
    });
    expect((await call('GET', '/api/v1/processes')).json.error.code).toBe('conflict');
    expect((await init()).status).toBe(200);
    const { data } = (await publish('{}')).json;
    await consumer.arrival('agent.event');
    expect(consumer.types).toEqual(['sandbox.ready', 'agent.event']);
    expect(consumer.find(data.event_id)?.headers['x-service-attempt']).toBe('1');
  });
});
