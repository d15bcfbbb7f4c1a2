import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../support/ctl/sandboxctl.ts';
import { deliveryDetail, StandInDaemon, succeed } from '../support/ctl/stand-in-daemon.ts';

const daemon = new StandInDaemon();
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  env = { SANDBOXD_URL: await daemon.start() };
});

afterAll(() => daemon.stop());

describe('sandboxctl test', () => {
  it.each([
    ['delivered', 0],
    ['pending', 1],
    ['failed', 1],
  ] as const)('shows a delivery that is %s and exits with %d', async (state, code) => {
    daemon.on('POST /webhook/test', (_, response) => succeed(response, 200, deliveryDetail(1, { state })));
    const ended = await run(['test'], env);
    expect(ended.code).toBe(code);
    expect(ended.stdout).toContain(`state         ${state}\n`);
    expect(daemon.received.at(-1)?.body).toBe('');
  });
});
