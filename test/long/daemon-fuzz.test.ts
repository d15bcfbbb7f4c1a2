import { describe, expect, it } from 'vitest';
import { fuzzDaemon, judged } from '../support/daemon-fuzz.ts';
import { startSandboxd } from '../support/sandboxd-program.ts';
import { longSized, seeded } from './support/size.ts';

const REQUESTS = longSized(50_000);
const NOBODY = 'http://127.0.0.1:9/';

describe('the local API under many random raw requests', () => {
  it.each([null, 'wrong'])('accepts nothing but valid publishes with the token %s', async (wrong_token) => {
    const seed = seeded(`raw requests ${wrong_token}`).below(2 ** 31);
    const daemon = await startSandboxd(['--webhook-url', NOBODY, '--shutdown-grace-ms', '0']);
    const { port } = new URL(daemon.url);
    const fuzz = await fuzzDaemon({ port: Number(port), seed, count: REQUESTS, wrong_token });
    expect((await daemon.call('GET', '/api/v1/processes')).data.processes).toEqual([]);
    expect(await daemon.end('SIGTERM')).toEqual({ code: 0, signal: null });
    const report = judged(fuzz, daemon.state_dir);
    expect(report).toMatchObject({ requests: REQUESTS, lost: [], forged: [], odd_answers: [] });
  });
});
