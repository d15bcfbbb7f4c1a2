import { describe, expect, it } from 'vitest';
import { openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { append } from '../../../support/outbox/rows.ts';
import { scratchFolder } from '../../../support/scratch.ts';

const HOUR_MS = 60 * 60 * 1000;

describe("the store's clock", () => {
  /** Opens, lets time pass, commits, closes, and opens again later. */
  async function over(restart: (clock: ManualClock) => Promise<ManualClock>): Promise<number> {
    const state_dir = scratchFolder();
    const clock = new ManualClock();
    const first = openRows(clock, { state_dir });
    await clock.advance(10_000);
    append(first.rows, '{}');
    const before_ms = first.rows.now();
    first.db.close();
    return openRows(await restart(clock), { state_dir }).rows.now() - before_ms;
  }

  it('goes on over a restart with the time that passed meanwhile', async () => {
    const passed_ms = await over(async (clock) => {
      await clock.advance(5_000);
      return clock;
    });
    expect(passed_ms).toBe(5_000);
  });

  it('goes on where the monotonic clock starts anew, as after a boot', async () => {
    expect(await over(async (clock) => new ManualClock(clock.wallMs() + 5_000))).toBe(5_000);
  });

  it('stands still, and never goes back, where the wall clock was set back meanwhile', async () => {
    expect(await over(async (clock) => new ManualClock(clock.wallMs() - 24 * HOUR_MS))).toBe(0);
  });

  it('follows the time since the boot over a restart, whatever the wall clock was set to', async () => {
    for (const step_ms of [2_000 * 24 * HOUR_MS, -24 * HOUR_MS]) {
      const passed_ms = await over(async (clock) => {
        clock.step(step_ms);
        await clock.advance(5_000);
        return clock;
      });
      expect(passed_ms).toBe(5_000);
    }
  });

  it('goes on by no more than the time since the boot where that is another', async () => {
    const boot = { id: 'the next', ms: 60_000 };
    expect(await over(async (clock) => new ManualClock(clock.wallMs() + 24 * HOUR_MS, boot))).toBe(60_000);
  });

  it('takes a clock of the boot that went back for that of another', async () => {
    let id = '';
    const passed_ms = await over(async (clock) => {
      id = clock.boot().id;
      return new ManualClock(clock.wallMs() + 24 * HOUR_MS, { id, ms: 1_000 });
    });
    expect(passed_ms).toBe(1_000);
  });

  it('does not follow steps of the wall clock while it runs', async () => {
    const clock = new ManualClock();
    const { rows } = openRows(clock);
    const before_ms = rows.now();
    clock.step(24 * HOUR_MS);
    await clock.advance(1_000);
    clock.step(-48 * HOUR_MS);
    expect(rows.now() - before_ms).toBe(1_000);
  });
});
