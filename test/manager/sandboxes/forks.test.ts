import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../src/contract/errors.ts';
import { envOf, webhookTargetOf } from '../../../src/manager/sandboxes/sandbox-row.ts';
import { sandboxView } from '../../../src/manager/sandboxes/sandbox-view.ts';
import { SEAL } from '../../support/manager/outbox.ts';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';
import { describeOnStores } from '../../support/stores.ts';

const LIMITS = { watch_ignore: ['*.log'], events: ['agent.event' as const], retry: 'any' as const };

const CONFIG = {
  webhook: { url: 'http://127.0.0.1:9/hook', secret: 'of this test', watch_dir: '/work', ...LIMITS },
  metadata: { 'app/tier': 'web' },
  env_vars: { A: '1' },
  ttl: 60,
  hard_ttl: 600,
  idle_ttl: 30,
  resources: { memory: '256Mi' },
};

describeOnStores('a fork', (fresh) => {
  it('is paused and has the configuration of its source under its own identity', async () => {
    const { claim, forks, sandboxes, clock, runtime } = await scriptedParts(await fresh());
    runtime.persistence = 'root';
    const named = await claim({ template: 'a-template', config: CONFIG });
    await clock.advance(10_000);
    const now_ms = clock.wallMs();
    const child = await forks.fork(named, {});
    expect(child.sandbox_id).not.toBe(named.sandbox_id);
    expect(child).toMatchObject({
      ...{ status: 'paused', operation: null, team_id: 'team_1', template_id: 'a-template' },
      ...{ runtime_generation: 1, pod_name: `pod-${child.sandbox_id}`, memory_mib: 256 },
      persistence: 'root',
      ...{ idle_ttl_s: 30, idle_expires_at_ms: null, webhook_url: CONFIG.webhook.url, watch_dir: '/work' },
      ...{ expires_at_ms: now_ms + 60_000, hard_expires_at_ms: now_ms + 600_000, claimed_at_ms: now_ms },
    });
    expect(sandboxView(child, SEAL).metadata).toEqual({ 'app/tier': 'web' });
    expect(sandboxView(child, SEAL).webhook).toMatchObject(LIMITS);
    expect(runtime.specs.get(child.sandbox_id)?.webhook).toMatchObject(LIMITS);
    expect(envOf(child, SEAL)).toEqual({ A: '1' });
    expect(webhookTargetOf(child, SEAL)).toMatchObject({ webhook_secret: 'of this test', retry: 'any' });
    expect(await sandboxes.get(named)).toMatchObject({
      ...{ status: 'running', operation: null, persistence: 'root' },
    });
  });

  it('takes durations of its own; 0 is none', async () => {
    const { claim, forks, clock } = await scriptedParts(await fresh());
    const named = await claim({ config: CONFIG });
    const child = await forks.fork(named, { ttl: 5, hard_ttl: 0 });
    expect(child).toMatchObject({ ttl_s: 5, expires_at_ms: clock.wallMs() + 5_000 });
    expect(child).toMatchObject({ hard_ttl_s: 0, hard_expires_at_ms: null });
  });
});

describe('a fork with a webhook', () => {
  it('has it in place of that of its source, which stays as it is: the secret is replaced', async () => {
    const { claim, forks, sandboxes, runtime } = await scriptedParts();
    const named = await claim({ config: CONFIG });
    const webhook = {
      ...{ url: 'http://127.0.0.1:9/new', secret: 'another of this test' },
      ...{ watch_dir: null, watch_ignore: [], events: null, retry: 'transient' as const },
    };
    const child = await forks.fork(named, { webhook });
    expect(runtime.specs.get(child.sandbox_id)?.webhook).toEqual(webhook);
    expect(webhookTargetOf(child, SEAL)?.webhook_secret).toBe('another of this test');
    expect(envOf(child, SEAL)).toEqual({ A: '1' });
    const source = await sandboxes.get(named);
    expect(webhookTargetOf(source, SEAL)?.webhook_secret).toBe('of this test');
    const unsigned = await forks.fork(named, { webhook: { ...webhook, secret: '' } });
    expect(webhookTargetOf(unsigned, SEAL)?.webhook_secret).toBe('');
  });
});

describe('a fork that fails', () => {
  it('leaves no row, and its source as it was', async () => {
    const { claim, forks, services, runtime, sandboxes } = await scriptedParts();
    const named = await claim({ config: CONFIG });
    runtime.fail('fork', new ApiError('internal_error', 'on purpose'));
    await expect(forks.fork(named, {})).rejects.toThrow('on purpose');
    expect(await sandboxes.get(named)).toMatchObject({ status: 'running', operation: null });
    expect(await services.store.list('team_1', { limit: 10, offset: 0 })).toMatchObject({ count: 1 });
  });

  it('because the runtime of the source has died leaves the source failed', async () => {
    const { claim, forks, runtime, sandboxes, services } = await scriptedParts();
    const named = await claim();
    runtime.states.set(named.sandbox_id, 'lost');
    await expect(forks.fork(named, {})).rejects.toMatchObject({
      code: 'conflict',
      details: { status: 'failed' },
    });
    expect(await sandboxes.get(named)).toMatchObject({ status: 'failed' });
    expect(await services.store.list('team_1', { limit: 10, offset: 0 })).toMatchObject({ count: 1 });
  });
});
