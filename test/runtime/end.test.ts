import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { SandboxRecord } from '../../src/runtime/sandbox-files.ts';
import { type Consumer, startConsumer } from '../support/consumer.ts';
import { Sandboxes, spec, undeliveredRecord, webhook } from '../support/runtime/sandboxes.ts';

async function refusing(): Promise<Consumer> {
  const consumer = await startConsumer();
  consumer.answer = (_, response) => response.writeHead(503).end();
  return consumer;
}

function record(sandboxes: Sandboxes, sandbox_id: string): SandboxRecord {
  return JSON.parse(readFileSync(join(sandboxes.data_dir, sandbox_id, 'sandbox.json'), 'utf8'));
}

/** A hundred at a time: a daemon has so many connections. */
async function publish(sandboxes: Sandboxes, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) {
    const publishes = Array.from({ length: Math.min(100, count - ids.length) }, (_, n) =>
      sandboxes.ask('sbx-1', 'POST', '/webhook/publish', { payload: { n } }),
    );
    ids.push(...(await Promise.all(publishes)).map(({ event_id }) => event_id));
  }
  return ids;
}

describe('the end of a sandbox', () => {
  it('hands over every undelivered record, as the consumer has seen it, and again when it is asked again', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    const consumer = await refusing();
    await runtime.create(spec('sbx-1', webhook(consumer.url)));
    const ids = await publish(sandboxes, 300);
    await vi.waitFor(() => expect(consumer.deliveries.length).toBeGreaterThan(2));
    await expect(undeliveredRecord(runtime, 'sbx-1')).rejects.toMatchObject({ code: 'conflict' });
    expect(await runtime.end('sbx-1')).toEqual({ outcome: 'killed' });
    const { records, lost } = await undeliveredRecord(runtime, 'sbx-1');
    expect(lost).toBe(0);
    expect(records).toHaveLength(302);
    expect(records.map(({ event_id }) => event_id)).toEqual(expect.arrayContaining(ids));
    expect(records.map(({ sequence }) => sequence)).toEqual(records.map((_, n) => n + 1));
    expect(JSON.parse(records.at(-1)?.body ?? '{}')).toMatchObject({
      event_type: 'sandbox.killed',
      payload: { reason: 'api', signal: null },
    });
    for (const { body, event } of consumer.deliveries) {
      expect(records.find(({ event_id }) => event_id === event.event_id)?.body).toBe(body);
    }
    expect(await runtime.end('sbx-1')).toEqual({ outcome: 'killed' });
    expect((await undeliveredRecord(runtime, 'sbx-1')).records.map(({ body }) => body)).toEqual(
      records.map(({ body }) => body),
    );
    expect(await runtime.inspect('sbx-1')).toBe('lost');
    await expect(runtime.create(spec('sbx-1'))).rejects.toMatchObject({ code: 'conflict' });
  });

  it('does not wait for a consumer that hangs', async () => {
    const sandboxes = await Sandboxes.open();
    const consumer = await startConsumer();
    consumer.answer = () => {};
    await sandboxes.runtime.create(spec('sbx-1', webhook(consumer.url)));
    await publish(sandboxes, 20);
    await consumer.arrival('agent.event');
    const began_ms = performance.now();
    await sandboxes.runtime.end('sbx-1');
    expect(performance.now() - began_ms).toBeLessThan(3_000);
    expect((await undeliveredRecord(sandboxes.runtime, 'sbx-1')).records).toHaveLength(22);
  });

  it('comes after SIGKILL of the daemon, too: lost, with every record and none of its processes', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1', webhook((await refusing()).url)));
    await publish(sandboxes, 10);
    await sandboxes.ask('sbx-1', 'POST', '/processes', { shell: 'setsid sleep 1000 & sleep 1000' });
    const { daemon } = record(sandboxes, 'sbx-1');
    process.kill(daemon?.pid ?? 0, 'SIGKILL');
    await vi.waitFor(async () => expect(await runtime.inspect('sbx-1')).toBe('lost'));
    expect(await runtime.pause('sbx-1', null)).toBe('lost');
    expect(await runtime.change('sbx-1', { env: {} })).toBe('lost');
    expect(await runtime.fork('sbx-1', spec('sbx-2'))).toEqual({ outcome: 'lost' });
    expect(await runtime.end('sbx-1')).toEqual({ outcome: 'lost' });
    const { records, lost } = await undeliveredRecord(runtime, 'sbx-1');
    expect(lost).toBe(0);
    expect(records.filter(({ event_type }) => event_type === 'agent.event')).toHaveLength(10);
    expect(records[0]?.event_type).toBe('sandbox.ready');
    await runtime.remove('sbx-1');
    expect(await runtime.list()).toEqual([]);
    expect(await runtime.inspect('sbx-1')).toBe('absent');
    expect(await runtime.isAlive('sbx-1')).toBe(false);
  });

  it('comes to a daemon that hangs', async () => {
    const sandboxes = await Sandboxes.open();
    await sandboxes.runtime.create(spec('sbx-1', webhook((await refusing()).url)));
    await publish(sandboxes, 3);
    const { daemon } = record(sandboxes, 'sbx-1');
    process.kill(daemon?.pid ?? 0, 'SIGSTOP');
    expect(await sandboxes.runtime.isAlive('sbx-1')).toBe(true);
    expect(await sandboxes.runtime.inspect('sbx-1')).toBe('running');
    expect(await sandboxes.runtime.end('sbx-1')).toEqual({ outcome: 'lost' });
    expect((await undeliveredRecord(sandboxes.runtime, 'sbx-1')).records).toHaveLength(4);
  });

  it('is carried on by whoever comes after a manager that died in the middle', async () => {
    const sandboxes = await Sandboxes.open();
    await sandboxes.runtime.create(spec('sbx-1'));
    await sandboxes.ask('sbx-1', 'POST', '/sandbox/stop');
    const file = join(sandboxes.data_dir, 'sbx-1', 'sandbox.json');
    writeFileSync(file, JSON.stringify({ ...record(sandboxes, 'sbx-1'), state: 'ending' }));
    const second = await Sandboxes.open('local', sandboxes.data_dir);
    await vi.waitFor(async () => expect(await second.runtime.inspect('sbx-1')).toBe('lost'));
    expect(await second.runtime.end('sbx-1')).toEqual({ outcome: 'killed' });
  });

  it('removes what a create that died in the middle has left', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1'));
    const file = join(sandboxes.data_dir, 'sbx-1', 'sandbox.json');
    const made = record(sandboxes, 'sbx-1');
    writeFileSync(file, JSON.stringify({ ...made, state: 'creating', daemon: null }));
    expect(await runtime.inspect('sbx-1')).toBe('absent');
    expect(await runtime.end('sbx-1')).toEqual({ outcome: 'absent' });
    await vi.waitFor(() => expect(() => process.kill(made.daemon?.pid ?? 0, 0)).toThrow('ESRCH'));
    expect(await undeliveredRecord(runtime, 'sbx-1')).toEqual({ records: [], lost: 0, set_aside: 0 });
    await runtime.create(spec('sbx-1', { env: { AGAIN: 'yes' } }));
    expect(await sandboxes.output('sbx-1', 'echo $AGAIN')).toBe('yes');
  });
});
