import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { ApiError } from '../../src/contract/errors.ts';
import type { SandboxEvent } from '../../src/contract/events.ts';
import { PauseSwitch, withOutboxCopy } from '../../src/daemon/pause-switch.ts';
import { draft } from '../support/in-process-store.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openClient } from '../support/outbox/open-client.ts';
import { scratchFolder } from '../support/scratch.ts';

const USAGE = { cpu_ms: 1, memory_bytes: 2, processes: 3 };

/** A switch over parts that note what is done to them; `refuse` decides which events the outbox refuses. */
function pauseSwitch(refuse: (event: SandboxEvent) => boolean = () => false) {
  const clock = new ManualClock();
  const steps: string[] = [];
  const stages: string[] = [];
  const emitted: { event: SandboxEvent; key: string; only_after?: string | undefined }[] = [];
  const note = (step: string) => async () => void steps.push(step);
  const pause_switch = new PauseSwitch({
    clock,
    state_dir: scratchFolder(),
    store: { checkpoint: note('checkpoint'), copyTo: async () => {} },
    publisher: {
      emit: async (event, key, only_after) => {
        if (refuse(event)) throw new ApiError('outbox_unavailable');
        steps.push(event.event_type);
        emitted.push({ event, key, only_after });
      },
    },
    supervisor: {
      pause: async (memory) => void steps.push(memory === false ? 'end' : 'freeze'),
      resume: async (memory) => void steps.push(memory === false ? 'thaw and end' : 'thaw'),
      usage: async () => USAGE,
    },
    dispatcher: {
      start: note('deliver'),
      flush: async (ms: number) => void steps.push(`flush ${ms}`),
      pause: () => void steps.push('hold'),
    },
    watcher: { reconcile: note('rescan') },
    onStage: (stage) => void stages.push(stage),
  });
  return { clock, steps, stages, emitted, pause_switch };
}

describe('a pause', () => {
  it('freezes, commits its event, delivers what is pending, and only then holds deliveries back', async () => {
    const { pause_switch, steps, stages, emitted } = pauseSwitch();
    await pause_switch.pause('idle', 2_000);
    expect(steps).toEqual(['freeze', 'sandbox.paused', 'flush 2000', 'hold', 'checkpoint']);
    expect(stages).toEqual(['pausing', 'paused']);
    expect(emitted[0]?.event.payload).toEqual({ reason: 'idle', resource_usage: USAGE });
    expect(pause_switch.is_paused).toBe(true);
  });

  it('of a paused sandbox does nothing', async () => {
    const { pause_switch, steps } = pauseSwitch();
    await pause_switch.pause(null, 0);
    const { length } = steps;
    await pause_switch.pause(null, 0);
    expect(steps).toHaveLength(length);
  });

  it('whose event the outbox refuses lets the processes run again', async () => {
    const { pause_switch, steps, stages } = pauseSwitch(() => true);
    await expect(pause_switch.pause(null, 0)).rejects.toMatchObject({ code: 'outbox_unavailable' });
    expect(steps).toEqual(['freeze', 'thaw']);
    expect(stages).toEqual(['pausing', 'running']);
    expect(pause_switch.is_paused).toBe(false);
  });

  it('that failed is taken back as soon as the outbox takes events, if its own event was stored', async () => {
    let is_refusing = true;
    const { pause_switch, clock, emitted } = pauseSwitch(() => is_refusing);
    await expect(pause_switch.pause('idle', 0)).rejects.toThrow();
    await clock.advance(3_000);
    expect(emitted).toEqual([]);
    is_refusing = false;
    await clock.advance(1_000);
    expect(emitted).toHaveLength(1);
    const [{ event, key, only_after } = { event: null, key: '' }] = emitted;
    expect(event).toMatchObject({ event_type: 'sandbox.resumed', payload: { reason: 'idle', paused_ms: 0 } });
    expect(key).toBe(`${only_after} undone`);
    await clock.advance(60_000);
    expect(emitted).toHaveLength(1);
  });
});

describe('without memory', () => {
  it('a pause ends the processes and goes on delivering, and a resume has nothing to bring back', async () => {
    const { pause_switch, steps } = pauseSwitch();
    expect(await pause_switch.pause(null, 2_000, false)).toBe(false);
    expect(steps).toEqual(['end', 'sandbox.paused', 'checkpoint']);
    expect(await pause_switch.pause(null, 2_000)).toBe(false);
    expect(await pause_switch.resume(null)).toBe(false);
    expect(await pause_switch.pause(null, 2_000)).toBe(true);
    expect(await pause_switch.pause(null, 2_000, false)).toBe(true);
    expect(await pause_switch.resume(null)).toBe(true);
  });

  it('a resume ends what the pause has kept before it says that it runs', async () => {
    const { pause_switch, steps } = pauseSwitch();
    await pause_switch.pause(null, 0);
    steps.length = 0;
    expect(await pause_switch.resume(null, false)).toBe(false);
    expect(steps).toEqual(['thaw and end', 'sandbox.resumed', 'deliver', 'rescan']);
  });

  it('a change whose event the outbox refuses is undone, but what was ended', async () => {
    const { pause_switch: running, steps } = pauseSwitch(() => true);
    await expect(running.pause(null, 0, false)).rejects.toMatchObject({ code: 'outbox_unavailable' });
    expect([steps, running.is_paused]).toEqual([['end', 'thaw'], false]);
    let refused = 'sandbox.resumed';
    const { pause_switch } = pauseSwitch(({ event_type }) => event_type === refused);
    await pause_switch.pause(null, 0);
    await expect(pause_switch.resume(null, false)).rejects.toMatchObject({ code: 'outbox_unavailable' });
    expect(pause_switch.is_paused).toBe(true);
    refused = '';
    expect(await pause_switch.resume(null)).toBe(false);
  });
});

describe('a resume', () => {
  it('thaws, commits its event with the length of the pause, delivers again, and rescans', async () => {
    const { pause_switch, clock, steps, stages, emitted } = pauseSwitch();
    await pause_switch.pause(null, 0);
    steps.length = 0;
    await clock.advance(1_500);
    await pause_switch.resume('back');
    expect(steps).toEqual(['thaw', 'sandbox.resumed', 'deliver', 'rescan']);
    expect(stages.at(-1)).toBe('running');
    expect(emitted[1]?.event.payload).toEqual({ reason: 'back', paused_ms: 1_500 });
  });

  it('of a running sandbox does nothing', async () => {
    const { pause_switch, steps } = pauseSwitch();
    await pause_switch.resume(null);
    expect(steps).toEqual([]);
  });

  it('whose event the outbox refuses leaves the sandbox paused', async () => {
    const { pause_switch, steps } = pauseSwitch((event) => event.event_type === 'sandbox.resumed');
    await pause_switch.pause(null, 0);
    steps.length = 0;
    await expect(pause_switch.resume(null)).rejects.toMatchObject({ code: 'outbox_unavailable' });
    expect(steps).toEqual(['thaw', 'freeze']);
    expect(pause_switch.is_paused).toBe(true);
  });
});

describe('a quiesced sandbox', () => {
  it('is frozen during the work, without an event and without being paused', async () => {
    const { pause_switch, steps, stages } = pauseSwitch();
    await pause_switch.quiesce(async () => {
      steps.push('work');
      expect(pause_switch.is_paused).toBe(false);
    });
    expect(steps).toEqual(['freeze', 'work', 'thaw']);
    expect(stages).toEqual([]);
  });

  it('runs again when the work fails', async () => {
    const { pause_switch, steps } = pauseSwitch();
    const work = () => Promise.reject(new Error('the copy failed'));
    await expect(pause_switch.quiesce(work)).rejects.toThrow('the copy failed');
    expect(steps).toEqual(['freeze', 'thaw']);
  });

  it('that was paused stays frozen', async () => {
    const { pause_switch, steps } = pauseSwitch();
    await pause_switch.pause(null, 0);
    steps.length = 0;
    await pause_switch.quiesce(async () => void steps.push('work'));
    expect(steps).toEqual(['work']);
  });

  it('lets a pause that is asked for meanwhile wait for the end of the work, which is told to end', async () => {
    const { pause_switch, steps } = pauseSwitch();
    const { promise, resolve } = Promise.withResolvers<void>();
    let signal: AbortSignal | null = null;
    const quiesced = pause_switch.quiesce((over) => {
      signal = over;
      return promise;
    });
    await new Promise((done) => setImmediate(done));
    expect(signal).toMatchObject({ aborted: false });
    const paused = pause_switch.pause(null, 0);
    await new Promise((done) => setImmediate(done));
    expect(steps).toEqual(['freeze']);
    expect(signal).toMatchObject({ aborted: true });
    resolve();
    await Promise.all([quiesced, paused]);
    expect(steps).toEqual(['freeze', 'thaw', 'freeze', 'sandbox.paused', 'flush 0', 'hold', 'checkpoint']);
  });
});

async function outbox() {
  const opened = await openClient(systemClock);
  return { ...opened, copy: join(opened.state_dir, 'outbox-copy.db') };
}

function recordsIn(path: string): unknown {
  const db = new Database(path, { readonly: true });
  try {
    return db.prepare('SELECT count(*) FROM records').pluck().get();
  } finally {
    db.close();
  }
}

describe('a copy of the outbox', () => {
  it('holds every committed record while the work runs, and is removed after it', async () => {
    const { store, state_dir, copy } = await outbox();
    await store.append({ drafts: [draft('{"a":1}'), draft('{"a":2}')] });
    let records: unknown;
    await withOutboxCopy(store, state_dir, async () => {
      records = recordsIn(copy);
    });
    expect(records).toBe(2);
    expect(existsSync(copy)).toBe(false);
  });

  it('is removed when the work fails', async () => {
    const { store, state_dir, copy } = await outbox();
    const work = async () => {
      throw new Error('the fork was refused');
    };
    await expect(withOutboxCopy(store, state_dir, work)).rejects.toThrow('the fork was refused');
    expect(existsSync(copy)).toBe(false);
  });

  it('that cannot be made leaves the work undone', async () => {
    let has_worked = false;
    const store = { copyTo: () => Promise.reject(new Error('no space left')) };
    const made = withOutboxCopy(store, scratchFolder(), async () => {
      has_worked = true;
    });
    await expect(made).rejects.toThrow('no space left');
    expect(has_worked).toBe(false);
  });
});
