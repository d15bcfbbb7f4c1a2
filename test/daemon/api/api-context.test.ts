import { describe, expect, it } from 'vitest';
import { ApiContext, type ApiContextParts } from '../../../src/daemon/api/api-context.ts';
import { DaemonState, type LifeStage } from '../../../src/daemon/daemon-state.ts';
import type { Sandbox } from '../../../src/daemon/sandbox.ts';
import type { StartGate } from '../../../src/daemon/start-gate.ts';
import { startingError } from '../../../src/daemon/start-gate.ts';

/** The context of a daemon that has come this way; `steps` notes what is asked of its sandbox. */
function contextAt(way: LifeStage[], sandbox: Partial<Sandbox> | null, is_open = true) {
  const life = new DaemonState();
  for (const stage of way) life.enter(stage);
  const core = {
    gate: { is_open } as StartGate,
    get store(): never {
      throw startingError();
    },
  };
  const parts = { life, core, sandbox: () => sandbox, uptimeMs: () => 1 };
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
    expect(await codeOf(() => contextAt([], null).store)).toBe('outbox_unavailable');
  });

  it.each<[string, LifeStage[], Partial<Sandbox> | null, boolean, unknown]>([
    ['while it starts', [], null, false, 'outbox_unavailable'],
    ['while its gate is closed', [], { supervisor: SUPERVISOR }, false, 'outbox_unavailable'],
    ['before its init', ['awaiting_init'], null, true, 'conflict'],
    ['while it runs', ['running'], { supervisor: SUPERVISOR }, true, null],
    ['while it is paused', ['running', 'pausing', 'paused'], { supervisor: SUPERVISOR }, true, null],
  ])('has processes %s: %j', async (_, way, sandbox, is_open, code) => {
    expect(await codeOf(() => contextAt(way, sandbox, is_open).supervisor)).toBe(code);
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
