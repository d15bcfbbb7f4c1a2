import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { Daemon, SECRET } from './support/daemon.ts';
import { HostileReceiver } from './support/hostile-receiver.ts';
import { fault } from './support/scene.ts';
import type { Exchange } from './support/steps.ts';
import { status } from './support/steps.ts';
import { until } from './support/until.ts';

/** All that waits here waits for less than the daemon is stopped. */
const LIMIT_MS = 2_000;
const STOP_MS = 4_000;

describe('a daemon that is stopped and goes on', () => {
  fault('F17 times out neither attempts nor processes by that', { beside: true }, async (scene) => {
    const receiver = await HostileReceiver.start(scene, { secret: SECRET });
    const options = ['--attempt-timeout-ms', String(LIMIT_MS)];
    const daemon = await Daemon.start(scene, { webhook_url: receiver.url, options });
    await until('the start is delivered', () => receiver.delivered().size === 1);
    const held: Exchange[] = [];
    receiver.behave((exchange) => held.push(exchange));
    await daemon.run(['sleep', '1000'], { process_id: 'stopped', timeout_ms: LIMIT_MS });
    await until('its start is being delivered', () => held.length === 1);
    daemon.signal('SIGSTOP');
    await sleep(STOP_MS);
    daemon.signal('SIGCONT');
    // Its timers are due, and have run by the time at which it answers this.
    expect((await daemon.ask('/healthz')).status).toBe(200);
    const state = async () => {
      const { json } = await daemon.ask('/api/v1/processes/stopped');
      return (json?.data as { state: string } | undefined)?.state;
    };
    expect(await state()).toBe('running');
    receiver.behave(status(200));
    for (const exchange of held) status(200)(exchange);
    await until('it is delivered', () => receiver.delivered().size >= 2);
    expect(receiver.requests.filter(({ answered }) => answered === null)).toEqual([]);
    await until('the process has timed out at last', async () => (await state()) !== 'running');
  });
});
