import { describe, expect, it } from 'vitest';
import { fuzzDaemon, judged } from '../support/daemon-fuzz.ts';
import { startSandboxd } from '../support/sandboxd-program.ts';

const REQUESTS = 1_500;
const NOBODY = 'http://127.0.0.1:9/';

describe('the local API under random raw requests', () => {
  for (const wrong_token of [null, 'wrong']) {
    it(`accepts nothing but valid publishes ${wrong_token ? 'with a wrong token' : 'without a token'}`, async () => {
      const daemon = await startSandboxd(['--webhook-url', NOBODY, '--shutdown-grace-ms', '0']);
      const { port } = new URL(daemon.url);
      const fuzz = await fuzzDaemon({ port: Number(port), seed: 1, count: REQUESTS, wrong_token });
      expect((await daemon.call('GET', '/api/v1/processes')).data.processes).toEqual([]);
      expect((await daemon.call('GET', '/api/v1/sandbox')).data.state).toBe('running');
      expect((await fetch(`${daemon.url}/healthz`)).status).toBe(200);
      expect(await daemon.end('SIGTERM')).toEqual({ code: 0, signal: null });
      const report = judged(fuzz, daemon.state_dir);
      expect(report).toMatchObject({ requests: REQUESTS, lost: [], forged: [] });
      expect(report.publishes).toBeGreaterThan(0);
      expect(report.odd_answers).toEqual([]);
    });
  }
});
