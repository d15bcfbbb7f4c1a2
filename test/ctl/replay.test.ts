import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../support/ctl/sandboxctl.ts';
import { delivery, StandInDaemon, succeed } from '../support/ctl/stand-in-daemon.ts';

const daemon = new StandInDaemon();
const pending = delivery(12, { state: 'pending', finished_at: null });
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  env = { SANDBOXD_URL: await daemon.start() };
  daemon.on(`POST /webhook/deliveries/${pending.event_id}/replay`, (_, response) => {
    succeed(response, 200, pending);
  });
  daemon.on('POST /webhook/deliveries/replay', (_, response) => succeed(response, 200, { replayed: 3 }));
});

afterAll(() => daemon.stop());

describe('sandboxctl replay', () => {
  it('makes one record pending again', async () => {
    const ended = await run(['replay', pending.event_id], env);
    expect(ended).toEqual({ code: 0, stdout: `${pending.event_id} is pending\n`, stderr: '' });
    expect(JSON.parse((await run(['replay', pending.event_id, '--json'], env)).stdout)).toEqual(pending);
  });

  it('makes all records of a state pending again', async () => {
    const ended = await run(['replay', '--state', 'failed'], env);
    expect(ended).toEqual({ code: 0, stdout: '3 failed records are pending again\n', stderr: '' });
    expect(daemon.received.at(-1)?.url).toBe('/api/v1/webhook/deliveries/replay?state=failed');
  });

  it.each([[['replay']], [['replay', 'evt_1', '--state', 'failed']]])(
    'takes %j for bad usage',
    async (args) => {
      const ended = await run(args, env);
      expect(ended).toEqual({
        code: 2,
        stdout: '',
        stderr: 'sandboxctl: replay takes either an event_id or --state\n',
      });
    },
  );
});
