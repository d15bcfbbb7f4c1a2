import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { publish, recordOf, refusing } from '../support/runtime/ending-sandboxes.ts';
import { Sandboxes, spec, undeliveredRecord, webhook } from '../support/runtime/sandboxes.ts';

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

describe('a daemon of a sandbox', () => {
  it('is lost after SIGKILL, with every record and none of its processes', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1', webhook((await refusing()).url)));
    await publish(sandboxes, 10);
    await sandboxes.ask('sbx-1', 'POST', '/processes', { shell: 'setsid sleep 1000 & sleep 1000' });
    const { daemon } = recordOf(sandboxes, 'sbx-1');
    process.kill(daemon?.pid ?? 0, 'SIGKILL');
    await eventually(async () => expect(await runtime.inspect('sbx-1')).toBe('lost'));
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

  it('freezes at a pause what left its session, its parents and its environment, and ends it with the sandbox', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1'));
    // Its command line is nobody else's.
    const seconds = `${100_000 + process.pid}.${Math.floor(performance.now())}`;
    const leaves = `env -i setsid sh -c '(env -i setsid sleep ${seconds} >/dev/null 2>&1 &)' &`;
    await sandboxes.output('sbx-1', `${leaves} wait`);
    const found = () =>
      readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandLine(pid) === `sleep\0${seconds}\0`);
    const stateOf = (pid = '') => /^State:\t(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    await eventually(() => expect(found()).toHaveLength(1));
    const [pid] = found();
    await runtime.pause('sbx-1', null);
    expect(stateOf(pid)).toBe('T');
    await runtime.resume('sbx-1', null);
    await eventually(() => expect(stateOf(pid)).toBe('S'));
    await runtime.end('sbx-1');
    expect(found()).toEqual([]);
  });

  it('can be ended while it hangs', async () => {
    const sandboxes = await Sandboxes.open();
    await sandboxes.runtime.create(spec('sbx-1', webhook((await refusing()).url)));
    await publish(sandboxes, 3);
    const { daemon } = recordOf(sandboxes, 'sbx-1');
    process.kill(daemon?.pid ?? 0, 'SIGSTOP');
    expect(await sandboxes.runtime.isAlive('sbx-1')).toBe(true);
    expect(await sandboxes.runtime.inspect('sbx-1')).toBe('running');
    expect(await sandboxes.runtime.end('sbx-1')).toEqual({ outcome: 'lost' });
    expect((await undeliveredRecord(sandboxes.runtime, 'sbx-1')).records).toHaveLength(4);
  });
});
