import { describe, expect, it } from 'vitest';
import { runningSandbox } from '../../../src/manager/sandboxes/auto-resume.ts';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';

const AUTO = { config: { auto_resume: true } };

describe('a call of the process routes', () => {
  it('finds a running sandbox as it is', async () => {
    const { claim, sandboxes, clock, runtime } = await scriptedParts();
    const named = await claim(AUTO);
    expect(await runningSandbox(sandboxes, named, clock)).toMatchObject({
      status: 'running',
      runtime_generation: 1,
    });
    expect(runtime.calls).toEqual([`create ${named.sandbox_id}`]);
  });

  it('resumes a paused sandbox with auto_resume once, however many calls there are', async () => {
    const { claim, sandboxes, clock, runtime } = await scriptedParts();
    const named = await claim(AUTO);
    await sandboxes.pause(named, null);
    const calls = Array.from({ length: 5 }, () => runningSandbox(sandboxes, named, clock));
    for (let i = 0; i < 10; i++) await clock.advance(50);
    for (const row of await Promise.all(calls)) {
      expect(row).toMatchObject({ status: 'running', runtime_generation: 2 });
    }
    expect(runtime.calls.filter((call) => call.startsWith('resume'))).toHaveLength(1);
  });

  it('waits for a pause in progress, then resumes', async () => {
    const { claim, sandboxes, clock, runtime } = await scriptedParts();
    const named = await claim(AUTO);
    const release = runtime.hold('pause');
    const pausing = sandboxes.pause(named, null);
    await clock.advance(0);
    const calling = runningSandbox(sandboxes, named, clock);
    await clock.advance(200);
    expect(runtime.calls.at(-1)).toBe(`pause ${named.sandbox_id}`);
    release();
    await pausing;
    for (let i = 0; i < 10; i++) await clock.advance(50);
    expect(await calling).toMatchObject({ status: 'running', runtime_generation: 2 });
  });

  it('is a conflict for a paused sandbox without auto_resume, and for one that has failed', async () => {
    const { claim, sandboxes, clock, database } = await scriptedParts();
    const plain = await claim();
    await sandboxes.pause(plain, null);
    const failed = await claim(AUTO);
    await database.db
      .updateTable('sandboxes')
      .set({ status: 'failed' })
      .where('sandbox_id', '=', failed.sandbox_id)
      .execute();
    for (const [named, status] of [
      [plain, 'paused'],
      [failed, 'failed'],
    ] as const) {
      const refused = { code: 'conflict', details: { status } };
      await expect(runningSandbox(sandboxes, named, clock)).rejects.toMatchObject(refused);
    }
    const unknown = { sandbox_id: plain.sandbox_id, team_id: 'team_2' };
    await expect(runningSandbox(sandboxes, unknown, clock)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('waits for an operation in progress for 20 s', async () => {
    const { claim, sandboxes, clock, runtime } = await scriptedParts();
    const named = await claim(AUTO);
    const release = runtime.hold('pause');
    const pausing = sandboxes.pause(named, null);
    await clock.advance(0);
    let ended: unknown = null;
    void runningSandbox(sandboxes, named, clock).catch((error) => {
      ended = error;
    });
    await clock.advance(19_900);
    expect(ended).toBeNull();
    await clock.advance(300);
    expect(ended).toMatchObject({ code: 'conflict' });
    release();
    await pausing;
  });
});
