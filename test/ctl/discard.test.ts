import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../support/ctl/sandboxctl.ts';
import { delivery, refuse, StandInDaemon, succeed } from '../support/ctl/stand-in-daemon.ts';

const daemon = new StandInDaemon();
const failed = delivery(12, { state: 'failed' });
const pending = delivery(13, { state: 'pending', finished_at: null });
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  env = { SANDBOXD_URL: await daemon.start() };
  const path = 'DELETE /webhook/deliveries';
  daemon.on(`${path}/${failed.event_id}`, (_, response) => succeed(response, 200, { discarded: 1 }));
  daemon.on(`${path}/${pending.event_id}`, (_, response) => {
    refuse(response, 409, 'conflict', 'The record is pending: it is still to be sent.');
  });
  daemon.on(path, (_, response) => succeed(response, 200, { discarded: 3 }));
});

afterAll(() => daemon.stop());

describe('sandboxctl discard', () => {
  it('discards one record', async () => {
    const ended = await run(['discard', failed.event_id], env);
    expect(ended).toEqual({ code: 0, stdout: `${failed.event_id} is discarded\n`, stderr: '' });
    const { stdout } = await run(['discard', failed.event_id, '--json'], env);
    expect(JSON.parse(stdout)).toEqual({ discarded: 1 });
  });

  it('discards all records of a state', async () => {
    const ended = await run(['discard', '--state', 'expired'], env);
    expect(ended).toEqual({ code: 0, stdout: '3 expired records are discarded\n', stderr: '' });
    expect(daemon.received.at(-1)?.url).toBe('/api/v1/webhook/deliveries?state=expired');
  });

  it('says that a pending record stays', async () => {
    const { code, stderr } = await run(['discard', pending.event_id], env);
    expect([code, stderr]).toEqual([1, expect.stringContaining('still to be sent')]);
  });

  it.each([[['discard']], [['discard', 'evt_1', '--state', 'failed']]])(
    'takes %j for bad usage',
    async (args) => {
      const stderr = 'sandboxctl: discard takes either an event_id or --state\n';
      expect(await run(args, env)).toEqual({ code: 2, stdout: '', stderr });
    },
  );
});
