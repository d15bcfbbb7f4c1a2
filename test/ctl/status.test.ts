import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SandboxView, WatcherStatus } from '../../src/contract/sandbox.ts';
import { initialStatus } from '../../src/watch/status.ts';
import { run } from '../support/ctl/sandboxctl.ts';
import { StandInDaemon, succeed } from '../support/ctl/stand-in-daemon.ts';

const daemon = new StandInDaemon();
const folder = mkdtempSync(join(tmpdir(), 'sandboxctl-'));
let url: string;

const sandbox = {
  sandbox_id: 'sbx_1',
  team_id: 'team_1',
  state: 'running',
  version: '0.1.0',
  uptime_ms: 61_000,
  outbox: { pending: 3, delivered: 10, failed: 1, expired: 0, foreign: 2, bytes: 2_048 },
  endpoint: { health: 'ok', next_probe_at: null, refusals: null } as SandboxView['endpoint'],
  watcher: {
    ...initialStatus('/w'),
    index_size: 7,
    degraded: 'compared at intervals',
  } as WatcherStatus | null,
  resource_usage: { cpu_ms: 1_200, memory_bytes: 10_485_760, processes: 2 },
};

beforeAll(async () => {
  url = await daemon.start(join(folder, 'control.sock'));
  daemon.on('GET /sandbox', (_, response) => succeed(response, 200, sandbox));
});

afterAll(async () => {
  await daemon.stop();
  rmSync(folder, { recursive: true });
});

describe('sandboxctl status', () => {
  it('shows the sandbox, also over a Unix socket', async () => {
    expect(await run(['status', '--url', url])).toEqual({
      code: 0,
      stderr: '',
      stdout: `sandbox    sbx_1 of team team_1
state      running for 1 min 1 s
version    0.1.0
outbox     3 pending, 10 delivered, 1 failed, 0 expired, 2 foreign; 2.0 KiB undelivered
endpoint   ok
watcher    starting /w, 7 files; compared at intervals
resources  2 processes, 10.0 MiB, 1.2 s of CPU
`,
    });
  });

  it('shows when an endpoint that does not answer is tried next', async () => {
    sandbox.endpoint = { health: 'backing_off', next_probe_at: '2026-01-01T00:00:00.000Z', refusals: null };
    const { stdout } = await run(['status', '--url', url]);
    expect(stdout).toContain('endpoint   not answering, next attempt 2026-01-01 00:00:00Z\n');
  });

  it('names an endpoint that refuses every event, with the status', async () => {
    const refusals = { status: 401, count: 12 };
    sandbox.endpoint = { health: 'rejecting', next_probe_at: null, refusals };
    const { stdout } = await run(['status', '--url', url]);
    expect(stdout).toContain('endpoint   rejecting, refused the last 12 attempts, with 401\n');
  });

  it('says that there is no webhook', async () => {
    sandbox.endpoint = null;
    expect((await run(['status', '--url', url])).stdout).toContain('endpoint   no webhook configured\n');
  });

  it('says that nothing is watched', async () => {
    sandbox.watcher = null;
    expect((await run(['status', '--url', url])).stdout).toContain('watcher    no directory watched\n');
  });

  it('prints JSON for a script', async () => {
    expect(JSON.parse((await run(['--json', 'status', '--url', url])).stdout)).toEqual(sandbox);
  });
});
