import { describe, expect, it } from 'vitest';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';
import { describeOnStores } from '../../support/stores.ts';

const SECOND_MS = 1_000;
const AUTO = { config: { auto_resume: true } };

describeOnStores('the ttl of a sandbox', (fresh) => {
  it('starts with the claim and again with each resume; the hard ttl starts once', async () => {
    const { claim, clock, sandboxes } = await scriptedParts(await fresh());
    const claimed_ms = clock.wallMs();
    const named = await claim({ config: { ttl: 60, hard_ttl: 600 } });
    const times = {
      expires_at_ms: claimed_ms + 60 * SECOND_MS,
      hard_expires_at_ms: claimed_ms + 600 * SECOND_MS,
    };
    expect(await sandboxes.get(named)).toMatchObject(times);
    await clock.advance(30 * SECOND_MS);
    await sandboxes.pause(named, null);
    expect(await sandboxes.get(named)).toMatchObject(times);
    await clock.advance(30 * SECOND_MS);
    expect(await sandboxes.resume(named, null)).toMatchObject({
      ...times,
      expires_at_ms: claimed_ms + 120 * SECOND_MS,
      runtime_generation: 2,
    });
  });

  it('restarts with a refresh, or lasts as long as the refresh says, once', async () => {
    const { claim, clock, sandboxes } = await scriptedParts(await fresh());
    const named = await claim({ config: { ttl: 60 } });
    await clock.advance(30 * SECOND_MS);
    const now_ms = clock.wallMs();
    expect(await sandboxes.refresh(named, undefined)).toMatchObject({
      expires_at_ms: now_ms + 60 * SECOND_MS,
    });
    expect(await sandboxes.refresh(named, 5)).toMatchObject({
      expires_at_ms: now_ms + 5 * SECOND_MS,
      ttl_s: 60,
    });
    expect(await sandboxes.refresh(named, 0)).toMatchObject({ expires_at_ms: null, ttl_s: 60 });
    const without = await claim();
    expect(await sandboxes.refresh(without, 5)).toMatchObject({ expires_at_ms: null });
  });

  it('counts from the change that sets it', async () => {
    const { claim, clock, sandboxes } = await scriptedParts(await fresh());
    const named = await claim();
    await clock.advance(10 * SECOND_MS);
    const now_ms = clock.wallMs();
    expect(await sandboxes.change(named, { ttl: 7, hard_ttl: 9, auto_resume: true })).toMatchObject({
      ttl_s: 7,
      expires_at_ms: now_ms + 7 * SECOND_MS,
      hard_ttl_s: 9,
      hard_expires_at_ms: now_ms + 9 * SECOND_MS,
      auto_resume: 1,
    });
    expect(await sandboxes.change(named, { ttl: 0 })).toMatchObject({ expires_at_ms: null, hard_ttl_s: 9 });
  });
});

describe('a change of a sandbox', () => {
  it('that needs no runtime does not ask it', async () => {
    const { claim, sandboxes, runtime } = await scriptedParts();
    const named = await claim();
    await sandboxes.change(named, { ttl: 5 });
    await sandboxes.refresh(named, 5);
    expect(runtime.calls).toEqual([`create ${named.sandbox_id}`]);
  });

  it('keeps the rest of the resources', async () => {
    const { claim, sandboxes, runtime } = await scriptedParts();
    const named = await claim({ config: { resources: { memory: '256Mi', cpu: '0.5', disk: '1Gi' } } });
    const { resources, memory_mib } = await sandboxes.change(named, { memory: '1Gi', memory_mib: 1024 });
    expect([JSON.parse(resources), memory_mib]).toEqual([{ memory: '1Gi', cpu: '0.5', disk: '1Gi' }, 1024]);
    expect(runtime.calls.at(-1)).toBe(`change ${named.sandbox_id} {"memory_mib":1024}`);
  });

  it('is not_found for another team, and a conflict while another transition is in progress', async () => {
    const { claim, clock, sandboxes, runtime } = await scriptedParts();
    const named = await claim();
    const foreign = { ...named, team_id: 'team_2' };
    for (const refused of [
      sandboxes.get(foreign),
      sandboxes.change(foreign, { ttl: 1 }),
      sandboxes.refresh(foreign, 1),
    ]) {
      await expect(refused).rejects.toMatchObject({ code: 'not_found' });
    }
    const release = runtime.hold('pause');
    const pausing = sandboxes.pause(named, null);
    await clock.advance(0);
    for (const refused of [sandboxes.change(named, { ttl: 1 }), sandboxes.resume(named, null)]) {
      await expect(refused).rejects.toMatchObject({ code: 'conflict', details: { status: 'running' } });
    }
    release();
    await pausing;
  });
});

describe('a call of the process routes', () => {
  it('finds a running sandbox as it is', async () => {
    const { claim, sandboxes, runtime } = await scriptedParts();
    const named = await claim(AUTO);
    expect(await sandboxes.running(named)).toMatchObject({
      status: 'running',
      runtime_generation: 1,
    });
    expect(runtime.calls).toEqual([`create ${named.sandbox_id}`]);
  });

  it('resumes a paused sandbox with auto_resume once, however many calls there are', async () => {
    const { claim, sandboxes, clock, runtime } = await scriptedParts();
    const named = await claim(AUTO);
    await sandboxes.pause(named, null);
    const calls = Array.from({ length: 5 }, () => sandboxes.running(named));
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
    const calling = sandboxes.running(named);
    await clock.advance(200);
    expect(runtime.calls.at(-1)).toBe(`pause ${named.sandbox_id}`);
    release();
    await pausing;
    for (let i = 0; i < 10; i++) await clock.advance(50);
    expect(await calling).toMatchObject({ status: 'running', runtime_generation: 2 });
  });

  it('is a conflict for a paused sandbox without auto_resume, and for one that has failed', async () => {
    const { claim, sandboxes, database } = await scriptedParts();
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
      await expect(sandboxes.running(named)).rejects.toMatchObject(refused);
    }
    const unknown = { sandbox_id: plain.sandbox_id, team_id: 'team_2' };
    await expect(sandboxes.running(unknown)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('waits for an operation in progress for 20 s', async () => {
    const { claim, sandboxes, operations, clock, runtime } = await scriptedParts();
    const named = await claim(AUTO);
    const release = runtime.hold('pause');
    const pausing = sandboxes.pause(named, null);
    await clock.advance(0);
    let ended: unknown = null;
    void sandboxes.running(named).catch((error) => {
      ended = error;
    });
    await clock.advance(10_000);
    await operations.renew();
    await clock.advance(9_900);
    expect(ended).toBeNull();
    await clock.advance(300);
    expect(ended).toMatchObject({ code: 'conflict' });
    release();
    await pausing;
  });
});
