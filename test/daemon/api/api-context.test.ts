import { describe, expect, it } from 'vitest';
import { VERSION } from '../../../src/base/version.ts';
import type { WatcherStatus } from '../../../src/contract/sandbox.ts';
import { ApiContext, type ApiContextParts } from '../../../src/daemon/api/api-context.ts';
import { DaemonState, type LifeStage } from '../../../src/daemon/daemon-state.ts';
import type { Sandbox } from '../../../src/daemon/sandbox.ts';
import { type StartGate, startingError } from '../../../src/daemon/start-gate.ts';
import { startConsumer } from '../../support/consumer.ts';
import { type Running, startDaemon } from '../../support/daemon/running-daemon.ts';

const COUNTS = { pending: 1, delivered: 2, failed: 3, expired: 4, foreign: 5, bytes: 6 };
const BACKOFF = { health: 'backing_off', next_probe_at: '2026-01-01T00:00:00.000Z', refusals: null } as const;
const UNTRIED = { health: 'ok', next_probe_at: null, refusals: null };
const USAGE = { cpu_ms: 1, memory_bytes: 2, processes: 3 };
const STATUS = { watch_dir: '/work', state: 'watching', queued: 4 } as WatcherStatus;

/** The core of a daemon that has just begun to start. */
const UNOPENED = {
  gate: { is_open: false } as StartGate,
  get store(): never {
    throw startingError();
  },
};

const OPENED = {
  gate: { is_open: true } as StartGate,
  identity: { sandbox_id: '', team_id: '' },
  store: { counts: () => COUNTS },
};

/** The context of a daemon that has come this way. */
function contextAt(
  way: LifeStage[],
  sandbox: Partial<Sandbox> | null,
  core: object = OPENED,
  webhook_url: string | null = null,
) {
  const life = new DaemonState();
  for (const stage of way) life.enter(stage);
  const parts = { config: { webhook_url }, life, core, sandbox: () => sandbox, uptimeMs: () => 7 };
  return new ApiContext(parts as unknown as ApiContextParts);
}

/** The code of the error that `read` ends with. */
async function codeOf(read: () => unknown): Promise<unknown> {
  try {
    await read();
  } catch (error) {
    return (error as { code: unknown }).code;
  }
  return null;
}

const SUPERVISOR = {} as Sandbox['supervisor'];

describe('what the routes see of a daemon', () => {
  it('has no outbox until it is open', async () => {
    expect(await codeOf(() => contextAt([], null, UNOPENED).store)).toBe('outbox_unavailable');
  });

  it.each<[string, LifeStage[], Partial<Sandbox> | null, boolean, unknown]>([
    ['while it starts', [], null, false, 'outbox_unavailable'],
    ['while its gate is closed', [], { supervisor: SUPERVISOR }, false, 'outbox_unavailable'],
    ['before its init', ['awaiting_init'], null, true, 'conflict'],
    ['while it runs', ['running'], { supervisor: SUPERVISOR }, true, null],
    ['while it is paused', ['running', 'pausing', 'paused'], { supervisor: SUPERVISOR }, true, null],
  ])('has processes %s: %j', async (_, way, sandbox, is_open, code) => {
    const core = is_open ? OPENED : UNOPENED;
    expect(await codeOf(() => contextAt(way, sandbox, core).supervisor)).toBe(code);
  });

  it('has no delivery and no watch before there is a sandbox', () => {
    expect(contextAt(['awaiting_init'], null)).toMatchObject({ dispatcher: null, watcher: null });
  });

  it.each<[LifeStage[], unknown]>([
    [[], 'conflict'],
    [['awaiting_init'], 'conflict'],
    [['running'], null],
    [['running', 'pausing'], null],
    [['running', 'pausing', 'paused'], null],
    [['running', 'stopping'], 'shutting_down'],
    [['stopping', 'stopped'], 'shutting_down'],
  ])('is paused and resumed after the stages %j, or refuses with %j', async (way, code) => {
    const steps: string[] = [];
    const pause_switch = {
      pause: async (reason: string | null, flush_ms: number) => steps.push(`pause ${reason} ${flush_ms}`),
      resume: async (reason: string | null) => steps.push(`resume ${reason}`),
    } as unknown as Sandbox['pause_switch'];
    const context = contextAt(way, { pause_switch });
    expect(await codeOf(() => context.pause('idle'))).toBe(code);
    expect(await codeOf(() => context.resume(null))).toBe(code);
    expect(steps).toEqual(code === null ? ['pause idle 2000', 'resume null'] : []);
  });
});

describe('the view of a sandbox', () => {
  it('shows every part that runs', async () => {
    const sandbox = {
      dispatcher: { endpointHealth: () => BACKOFF },
      watcher: { status: () => STATUS },
      supervisor: { usage: async () => USAGE },
    } as unknown as Sandbox;
    const core = { ...OPENED, identity: { sandbox_id: 'sb-1', team_id: 'team-1' } };
    expect(await contextAt(['running', 'pausing', 'paused'], sandbox, core).view()).toEqual({
      sandbox_id: 'sb-1',
      team_id: 'team-1',
      state: 'paused',
      version: VERSION,
      uptime_ms: 7,
      outbox: COUNTS,
      endpoint: BACKOFF,
      watcher: STATUS,
      resource_usage: USAGE,
    });
  });

  it('shows a daemon that starts as running, with nothing in use', async () => {
    expect(await contextAt([], null).view()).toMatchObject({
      state: 'running',
      watcher: null,
      resource_usage: { cpu_ms: 0, memory_bytes: 0, processes: 0 },
    });
  });

  it('has an endpoint only with a webhook, ok until the delivery knows better', async () => {
    expect((await contextAt([], null).view()).endpoint).toBeNull();
    expect((await contextAt([], null, OPENED, 'http://127.0.0.1:9/').view()).endpoint).toEqual(UNTRIED);
  });
});

async function endpointOf(daemon: Running): Promise<unknown> {
  return (await daemon.call('GET', '/api/v1/sandbox')).json.data.endpoint;
}

describe('the endpoint of a running daemon', () => {
  it('is absent without a webhook', async () => {
    expect(await endpointOf(await startDaemon())).toBeNull();
  });

  it('is shown with a webhook', async () => {
    const { url } = await startConsumer();
    expect(await endpointOf(await startDaemon('--webhook-url', url))).toEqual(UNTRIED);
  });

  it('is absent before the init, and shown after an init with a webhook', async () => {
    const { url } = await startConsumer();
    const daemon = await startDaemon('--await-init');
    expect(await endpointOf(daemon)).toBeNull();
    const body = JSON.stringify({ sandbox_id: 'sbx_1', team_id: 'team_1', webhook: { url } });
    expect((await daemon.call('POST', '/api/v1/sandbox/init', { body })).status).toBe(200);
    expect(await endpointOf(daemon)).toEqual(UNTRIED);
  });
});
