import { describe, expect, it } from 'vitest';
import { requestDaemon } from '../../../src/runtime/control-client.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { startConsumer } from '../consumer.ts';
import { eventually } from '../eventually.ts';
import { type Ran, SECRET, spec, undeliveredRecord, webhook } from './sandboxes.ts';

/** What many of them leave room for on a small machine. */
export const SMALL = { memory_mib: 256, cpu_millis: 100 };

/** What the suite is run on. */
export interface ConformingRuntime {
  runtime: Runtime;
  /** A folder of sandboxes that their forks get a copy of. */
  work_dir: string;
  /** The address of this machine, as sandboxes reach it. */
  host: string;
}

/** What the API of a sandbox's daemon answers. */
export async function ask(
  runtime: Runtime,
  id: string,
  method: string,
  path: string,
  body?: object,
  // biome-ignore lint/suspicious/noExplicitAny: what the API answers is what a test looks at.
): Promise<any> {
  const request = { method, path, within_ms: 30_000, ...(body ? { body } : {}) };
  const answer = await requestDaemon(() => runtime.connect(id), request);
  if (answer.outcome === 'unreachable' || answer.error) throw new Error(JSON.stringify(answer));
  return answer.data;
}

/** The standard output of a command in a sandbox, trimmed. */
export async function output(runtime: Runtime, id: string, shell: string): Promise<string> {
  const ran: Ran = await ask(runtime, id, 'POST', '/processes?wait_ms=20000', { shell });
  if (ran.exit_code !== 0) throw new Error(`${shell} ended with ${ran.exit_code}: ${ran.output.stderr}`);
  return ran.output.stdout.trim();
}

/** Ends a daemon as a crash would. The pattern does not match the shell that looks for it. */
export const CRASH =
  'cd /proc; for pid in [0-9]*; do if grep -q sandboxd.cj[s] $pid/cmdline; then kill -KILL $pid; fi; done 2>/dev/null';

/** The promises of `Runtime` that hold for every runtime with real sandboxes. `open` is called in each test. */
export function describeRuntime(name: string, open: () => Promise<ConformingRuntime>): void {
  describe(`a sandbox of the runtime ${name}`, () => {
    it('runs, pauses, resumes, changes, and hands over at its end what was not delivered, byte for byte', async () => {
      const { runtime, work_dir, host } = await open();
      const id = 'Life_1.of-a-Sandbox';
      const consumer = await startConsumer(host);
      const made = spec(id, { ...webhook(consumer.url), env: { MODE: 'test', OLD: 'yes' }, ...SMALL });
      expect((await runtime.create(made)).pod_name).not.toBe('');
      expect([await runtime.inspect(id), await runtime.liveness(id)]).toEqual(['running', 'alive']);
      expect(await runtime.create(made)).toEqual(await runtime.create(made));
      expect(await runtime.list()).toContain(id);
      expect(await output(runtime, id, `mkdir -p ${work_dir}; cd ${work_dir}; echo $MODE > f; cat f`)).toBe(
        'test',
      );
      expect(await runtime.pause(id, 'lunch')).toBe('done');
      expect(await runtime.inspect(id)).toBe('paused');
      expect((await consumer.arrival('sandbox.paused')).event.payload).toMatchObject({ reason: 'lunch' });
      expect(await runtime.resume(id, null)).toBe('done');
      await consumer.arrival('sandbox.resumed');
      expect(await runtime.change(id, { env: { MODE: 'new' }, memory_mib: 320 })).toBe('done');
      expect(await output(runtime, id, 'echo $MODE$OLD')).toBe('new');
      consumer.answer = (_, response) => response.writeHead(503).end();
      const { event_id } = await ask(runtime, id, 'POST', '/webhook/publish', { payload: { step: 1 } });
      await consumer.arrival('agent.event');
      await expect(undeliveredRecord(runtime, id)).rejects.toMatchObject({ code: 'conflict' });
      expect(await runtime.end(id)).toEqual({ outcome: 'killed' });
      const { records, lost } = await undeliveredRecord(runtime, id);
      expect(lost).toBe(0);
      const kinds = records.map(({ event_type }) => event_type);
      expect([kinds.includes('agent.event'), kinds.at(-1)]).toEqual([true, 'sandbox.killed']);
      expect(records.find((each) => each.event_id === event_id)?.body).toBe(consumer.find(event_id)?.body);
      expect(consumer.unsigned(SECRET)).toEqual([]);
      expect(await runtime.end(id)).toEqual({ outcome: 'killed' });
      expect((await undeliveredRecord(runtime, id)).records).toHaveLength(records.length);
      await expect(runtime.create(made)).rejects.toMatchObject({ code: 'conflict' });
      await runtime.remove(id);
      expect([await runtime.inspect(id), await runtime.list()]).toEqual(['absent', []]);
      await runtime.remove(id);
    });

    it('without memory ends its processes, keeps its disk, goes on delivering, and says so', async () => {
      const { runtime, work_dir, host } = await open();
      const id = 'emptied';
      const consumer = await startConsumer(host);
      await runtime.create(spec(id, { ...webhook(consumer.url), ...SMALL }));
      await output(runtime, id, `mkdir -p ${work_dir}; echo kept > ${work_dir}/f`);
      const long = (process_id: string) =>
        ask(runtime, id, 'POST', '/processes', { command: ['sleep', '1000'], process_id });
      const signalOf = (process_id: string) =>
        consumer.of('process.exited').find(({ event }) => event.payload.process_id === process_id)?.event
          .payload.signal;
      await long('one');
      consumer.answer = (_, response) => response.writeHead(503).end();
      expect(await runtime.pause(id, null, undefined, false)).toBe('emptied');
      expect([await runtime.inspect(id), await runtime.liveness(id)]).toEqual(['paused', 'alive']);
      await expect(long('none')).rejects.toThrow('conflict');
      expect((await ask(runtime, id, 'GET', '/processes/one')).state).toBe('exited');
      consumer.answer = (_, response) => response.writeHead(204).end();
      const delivered = async () => (await ask(runtime, id, 'GET', '/sandbox')).outbox;
      await eventually(async () => expect(await delivered()).toMatchObject({ pending: 0 }), 30_000);
      expect(signalOf('one')).toBe('SIGTERM');
      expect(await runtime.resume(id, null)).toBe('emptied');
      expect(await output(runtime, id, `cat ${work_dir}/f`)).toBe('kept');

      await long('two');
      expect(await runtime.pause(id, null)).toBe('done');
      expect(await runtime.resume(id, null, undefined, false)).toBe('emptied');
      expect((await ask(runtime, id, 'GET', '/processes/two')).state).toBe('exited');
      await eventually(() => expect(signalOf('two')).toBe('SIGTERM'), 30_000);

      // One whose manager was killed in the middle is another's, who has it run again.
      await ask(runtime, id, 'POST', '/processes', {
        shell: 'trap "" TERM; sleep 1000',
        process_id: 'three',
      });
      const left = ask(runtime, id, 'POST', '/sandbox/pause', { memory: false });
      const start = () => ask(runtime, id, 'POST', '/processes', { command: ['sleep', '1000'] });
      await eventually(async () => await expect(start()).rejects.toThrow('are being ended'));
      expect(await runtime.resume(id, null)).toBe('emptied');
      await left;
      expect(await runtime.inspect(id)).toBe('running');
      expect(await output(runtime, id, 'echo on')).toBe('on');
      await runtime.end(id);
      await runtime.remove(id);
    });

    it('is copied by a fork, paused, with an identity of its own, and is as before', async () => {
      const { runtime, work_dir } = await open();
      const [source, child] = ['Source', 'Child'];
      await runtime.create(spec(source, { ...SMALL }));
      await output(
        runtime,
        source,
        `mkdir -p ${work_dir}/-d; cd ${work_dir}; echo kept > -d/file; ln -s /etc link`,
      );
      expect(await runtime.fork(source, spec(child, { ...SMALL, env: { WHO: 'child' } }))).toMatchObject({
        outcome: 'created',
      });
      expect([await runtime.inspect(source), await runtime.inspect(child)]).toEqual(['running', 'paused']);
      expect(await runtime.resume(child, null)).toBe('emptied');
      expect(await output(runtime, child, `cd ${work_dir}; cat ./-d/file; readlink link; echo $WHO`)).toBe(
        'kept\n/etc\nchild',
      );
      await output(runtime, child, `rm -r ${work_dir}/./-d`);
      expect(await output(runtime, source, `cat ${work_dir}/./-d/file`)).toBe('kept');
      expect((await ask(runtime, child, 'GET', '/sandbox')).sandbox_id).toBe(child);
      for (const id of [child, source]) {
        await runtime.end(id);
        await runtime.remove(id);
      }
    });

    it('is lost when its daemon dies, and what that had committed is handed over', async () => {
      const { runtime, host } = await open();
      const id = 'lost';
      const consumer = await startConsumer(host);
      consumer.answer = (_, response) => response.writeHead(503).end();
      await runtime.create(spec(id, { ...webhook(consumer.url), ...SMALL }));
      const { event_id } = await ask(runtime, id, 'POST', '/webhook/publish', { payload: {} });
      await output(runtime, id, CRASH).catch(() => {});
      await eventually(async () => expect(await runtime.liveness(id)).toBe('lost'), 30_000);
      expect(await runtime.inspect(id)).toBe('lost');
      expect(await runtime.pause(id, null)).toBe('lost');
      expect(await runtime.fork(id, spec('other'))).toEqual({ outcome: 'lost' });
      expect(await runtime.end(id)).toEqual({ outcome: 'lost' });
      const { records, lost } = await undeliveredRecord(runtime, id);
      expect([records.map((each) => each.event_id).includes(event_id), lost]).toEqual([true, 0]);
      await runtime.remove(id);
      expect(await runtime.list()).toEqual([]);
    });

    it('is not there before it is made', async () => {
      const { runtime } = await open();
      const id = 'unknown';
      expect([await runtime.inspect(id), await runtime.liveness(id)]).toEqual(['absent', 'unknown']);
      expect([await runtime.pause(id, null), await runtime.change(id, { env: {} })]).toEqual([
        'unknown',
        'unknown',
      ]);
      expect(await runtime.fork(id, spec('other'))).toEqual({ outcome: 'unknown' });
      expect(await runtime.end(id)).toEqual({ outcome: 'absent' });
      expect(await undeliveredRecord(runtime, id)).toEqual({ records: [], lost: 0, set_aside: 0 });
      await expect(runtime.connect(id)).rejects.toThrow();
      await runtime.remove(id);
    });
  });
}
