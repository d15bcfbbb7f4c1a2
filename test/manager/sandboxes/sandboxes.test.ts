import { describe, expect, it } from 'vitest';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';
import { describeOnStores } from '../../support/stores.ts';

const SECOND_MS = 1_000;

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
