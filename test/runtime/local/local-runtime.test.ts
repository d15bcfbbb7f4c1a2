import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startConsumer } from '../../support/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import { publish, recordOf, refusing } from '../../support/runtime/ending-sandboxes.ts';
import {
  Sandboxes,
  SECRET,
  spec,
  TRUST,
  undeliveredRecord,
  webhook,
} from '../../support/runtime/sandboxes.ts';

const DAEMON_KINDS = [
  'sandbox.ready',
  'sandbox.paused',
  'sandbox.resumed',
  'sandbox.killed',
  'process.started',
  'process.exited',
  'process.crashed',
  'file.modified',
  'agent.event',
];

/** Everything that runs for a data directory, by its mark. */
function leftProcesses(data_dir: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(data_dir);
    } catch {
      return false;
    }
  });
}

describe.each(['local', 'local-unsafe'] as const)('a sandbox of the runtime %s', (kind) => {
  it('lives its whole life: all nine kinds of events of its daemon, each signed', async () => {
    const sandboxes = await Sandboxes.open(kind);
    const { runtime } = sandboxes;
    const consumer = await startConsumer();
    const watched = kind === 'local' ? '/work' : sandboxes.rootfs('sbx-1', 'work');
    const { pod_name, persistence } = await runtime.create(
      spec('sbx-1', { ...webhook(consumer.url, watched), env: { MODE: 'test' } }),
    );
    expect(pod_name).not.toBe('');
    expect(persistence).toBe(kind === 'local' ? 'root' : null);
    const ready = await consumer.arrival('sandbox.ready');
    expect(ready.event.payload).toMatchObject({ watch_dir: watched });
    expect(
      await sandboxes.output('sbx-1', `mkdir -p ${watched} && echo hello > ${watched}/file; echo $MODE`),
    ).toBe('test');
    await eventually(() => {
      const paths = consumer.of('file.modified').map(({ event }) => event.payload.path);
      expect(paths).toContain(`${watched}/file`);
    }, 120_000);
    const publish = `curl -sf -X POST -H 'Content-Type: application/json' -d '{"payload":{"step":1}}' $SANDBOXD_URL/api/v1/webhook/publish`;
    expect(await sandboxes.output('sbx-1', publish)).toContain('"success":true');
    expect((await consumer.arrival('agent.event')).event.payload).toEqual({ step: 1 });
    expect((await sandboxes.run('sbx-1', 'kill -SEGV $$')).exit_code).toBe(139);
    await consumer.arrival('process.crashed');
    expect(await runtime.pause('sbx-1', 'lunch')).toBe('done');
    expect(await runtime.inspect('sbx-1')).toBe('paused');
    expect((await consumer.arrival('sandbox.paused')).event.payload).toMatchObject({ reason: 'lunch' });
    expect(await runtime.resume('sbx-1', null)).toBe('done');
    expect(await runtime.inspect('sbx-1')).toBe('running');
    await consumer.arrival('sandbox.resumed');
    consumer.answer = (_, response) => response.writeHead(503).end();
    expect(await runtime.end('sbx-1')).toEqual({ outcome: 'killed' });
    const left: string[] = [];
    for await (const { records, lost_records } of runtime.handOver('sbx-1', TRUST)) {
      expect(lost_records).toBe(0);
      left.push(...records.map(({ event_type }) => event_type));
    }
    expect(left).toEqual(['sandbox.killed']);
    expect(new Set([...consumer.types, ...left])).toEqual(new Set(DAEMON_KINDS));
    expect(consumer.unsigned(SECRET)).toEqual([]);
    expect(consumer.deliveries.every(({ body }) => JSON.parse(body).sandbox_id === 'sbx-1')).toBe(true);
    await runtime.remove('sbx-1');
    expect(readdirSync(sandboxes.data_dir)).toEqual([]);
    expect(leftProcesses(sandboxes.data_dir)).toEqual([]);
    expect(readFileSync('/proc/mounts', 'utf8')).not.toContain(sandboxes.data_dir);
  });

  it('is found by another program that has the same data directory, which its daemon outlives', async () => {
    const first = await Sandboxes.open(kind);
    await first.runtime.create(spec('sbx-1'));
    const second = await Sandboxes.open(kind, first.data_dir);
    expect(await second.runtime.list()).toEqual(['sbx-1']);
    expect(await second.runtime.inspect('sbx-1')).toBe('running');
    expect(await second.runtime.pause('sbx-1', null)).toBe('done');
    expect(await first.runtime.inspect('sbx-1')).toBe('paused');
  });
});

describe('the local runtime', () => {
  it('knows nothing of what it did not make', async () => {
    const { runtime } = await Sandboxes.open();
    expect(await runtime.inspect('sbx-1')).toBe('absent');
    expect(await runtime.pause('sbx-1', null)).toBe('unknown');
    expect(await runtime.end('sbx-1')).toEqual({ outcome: 'absent' });
    await expect(runtime.connect('sbx-1')).rejects.toMatchObject({ code: 'ENOENT' });
    await runtime.remove('sbx-1');
    await expect(runtime.inspect('../etc')).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('the end of a sandbox', () => {
  it('hands over every undelivered record as the consumer saw it, also when asked again', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    const consumer = await refusing();
    await runtime.create(spec('sbx-1', webhook(consumer.url)));
    const ids = await publish(sandboxes, 300);
    await eventually(() => expect(consumer.deliveries.length).toBeGreaterThan(2));
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

  it('is completed by the next manager if one died during it', async () => {
    const sandboxes = await Sandboxes.open();
    await sandboxes.runtime.create(spec('sbx-1'));
    await sandboxes.ask('sbx-1', 'POST', '/sandbox/stop');
    const file = join(sandboxes.data_dir, 'sbx-1', 'sandbox.json');
    writeFileSync(file, JSON.stringify({ ...recordOf(sandboxes, 'sbx-1'), state: 'ending' }));
    const second = await Sandboxes.open('local', sandboxes.data_dir);
    await eventually(async () => expect(await second.runtime.inspect('sbx-1')).toBe('lost'));
    expect(await second.runtime.end('sbx-1')).toEqual({ outcome: 'killed' });
  });

  it('removes what an interrupted create left', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1'));
    const file = join(sandboxes.data_dir, 'sbx-1', 'sandbox.json');
    const made = recordOf(sandboxes, 'sbx-1');
    writeFileSync(file, JSON.stringify({ ...made, state: 'creating', daemon: null }));
    expect(await runtime.inspect('sbx-1')).toBe('absent');
    expect(await runtime.end('sbx-1')).toEqual({ outcome: 'absent' });
    await eventually(() => expect(() => process.kill(made.daemon?.pid ?? 0, 0)).toThrow('ESRCH'));
    expect(await undeliveredRecord(runtime, 'sbx-1')).toEqual({ records: [], lost: 0, set_aside: 0 });
    await runtime.create(spec('sbx-1', { env: { AGAIN: 'yes' } }));
    expect(await sandboxes.output('sbx-1', 'echo $AGAIN')).toBe('yes');
  });
});
