import { describe, expect, it } from 'vitest';
import type { Log } from '../../src/base/log.ts';
import { ServiceGroup } from '../../src/base/service.ts';

/** Notes its starts and stops; fails where it is told to. */
function part(name: string, log: string[], failing: 'start' | 'stop' | null = null) {
  const note = async (step: 'start' | 'stop') => {
    log.push(`${step} ${name}`);
    if (step === failing) throw new Error(`${name} does not ${step}`);
  };
  return { start: () => note('start'), stop: () => note('stop') };
}

describe('a service group', () => {
  it('stops what it started in reverse order, and once only', async () => {
    const log: string[] = [];
    const group = new ServiceGroup();
    await group.start(part('a', log));
    group.add(part('b', log));
    await group.start(part('c', log));
    await Promise.all([group.stop(), group.stop()]);
    expect(log).toEqual(['start a', 'start c', 'stop c', 'stop b', 'stop a']);
  });

  it('stops every part although some fail, and throws the first error', async () => {
    const log: string[] = [];
    const group = new ServiceGroup();
    await group.start(part('a', log, 'stop'));
    await group.start(part('b', log, 'stop'));
    await group.start(part('c', log));
    await expect(group.stop()).rejects.toThrow('b does not stop');
    expect(log.slice(3)).toEqual(['stop c', 'stop b', 'stop a']);
  });

  it('does not stop a part whose start failed', async () => {
    const log: string[] = [];
    const group = new ServiceGroup();
    await group.start(part('a', log));
    await expect(group.start(part('b', log, 'start'))).rejects.toThrow('b does not start');
    await group.stop();
    expect(log).toEqual(['start a', 'start b', 'stop a']);
  });

  it('stops every part after a failed start, and logs what cannot be stopped', async () => {
    const log: string[] = [];
    const errors: unknown[] = [];
    const group = new ServiceGroup();
    await group.start(part('a', log));
    group.add(part('b', log, 'stop'));
    await group.abandon({ error: (fields: object) => errors.push(fields) } as unknown as Log);
    expect(log).toEqual(['start a', 'stop b', 'stop a']);
    expect(errors).toEqual([{ reason: 'b does not stop' }]);
  });
});
