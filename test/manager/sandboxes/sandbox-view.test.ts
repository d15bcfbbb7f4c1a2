import { describe, expect, it } from 'vitest';
import { EVENT_TYPES } from '../../../src/contract/events.ts';
import { sealedEnv } from '../../../src/manager/sandboxes/sandbox-row.ts';
import { optionalTimestamp, sandboxView, statusView } from '../../../src/manager/sandboxes/sandbox-view.ts';
import { SEAL } from '../../support/manager/outbox.ts';
import { rowOf } from '../../support/manager/sandbox-rows.ts';

const AT_MS = Date.UTC(2026, 0, 1);

describe('a sandbox as the API shows it', () => {
  it('has every key, null where there is nothing', () => {
    const row = rowOf('sbx_1', {
      claimed_at_ms: null,
      pod_name: null,
      created_at_ms: AT_MS,
      updated_at_ms: AT_MS + 1,
    });
    expect(sandboxView(row, SEAL)).toEqual({
      id: 'sbx_1',
      template_id: 'default',
      team_id: 'team_1',
      status: 'running',
      failure: null,
      paused: false,
      auto_resume: false,
      idle_ttl: 0,
      pod_name: null,
      runtime_id: null,
      persistence: null,
      runtime_generation: 1,
      resources: { memory: '512Mi', cpu: 0.1, disk: '10Gi' },
      bandwidth: {
        egress_bandwidth_bytes_per_second: 0,
        ingress_bandwidth_bytes_per_second: 0,
        bandwidth_burst_bytes: 0,
      },
      network: { mode: 'allow-all', enforced_by: null },
      network_usage: null,
      webhook: null,
      metadata: {},
      env_names: [],
      expires_at: null,
      hard_expires_at: null,
      claimed_at: null,
      created_at: '2026-01-01T00:00:00.000Z',
      updated_at: '2026-01-01T00:00:00.001Z',
    });
  });

  it('has a webhook with what it is limited to, as given or by default, and never its secret', () => {
    const url = 'https://consumer.example/hook?key=of-the-team';
    const given = { webhook_url: url, webhook_secret_sealed: 'sealed', watch_dir: '/work' };
    expect(sandboxView(rowOf('sbx_1', given), SEAL).webhook).toEqual({
      ...{ url, watch_dir: '/work', has_secret: true },
      ...{ watch_ignore: [], events: EVENT_TYPES, retry: 'transient' },
    });
    const limited = {
      watch_ignore: '["*.log"]',
      webhook_events: '["agent.event"]',
      webhook_retry: 'any' as const,
    };
    expect(sandboxView(rowOf('sbx_1', { webhook_url: url, ...limited }), SEAL).webhook).toEqual({
      ...{ url, watch_dir: null, has_secret: false },
      ...{ watch_ignore: ['*.log'], events: ['agent.event'], retry: 'any' },
    });
  });

  it('shows times in UTC with milliseconds', () => {
    const row = rowOf('sbx_1', { expires_at_ms: AT_MS + 1_500, hard_expires_at_ms: AT_MS + 86_400_000 });
    expect(sandboxView(row, SEAL)).toMatchObject({
      expires_at: '2026-01-01T00:00:01.500Z',
      hard_expires_at: '2026-01-02T00:00:00.000Z',
    });
    expect(optionalTimestamp(0)).toBe('1970-01-01T00:00:00.000Z');
  });

  it('is paused in that status alone', () => {
    for (const status of ['starting', 'running', 'paused', 'terminating', 'failed'] as const) {
      expect(sandboxView(rowOf('sbx_1', { status }), SEAL)).toMatchObject({
        status,
        paused: status === 'paused',
      });
    }
    expect(sandboxView(rowOf('sbx_1', { auto_resume: 1 }), SEAL).auto_resume).toBe(true);
  });

  it('says why it failed, and that alone', () => {
    expect(sandboxView(rowOf('sbx_1', { status: 'failed' }), SEAL).failure).toBe('runtime_lost');
    expect(sandboxView(rowOf('sbx_1', { status: 'paused' }), SEAL).failure).toBeNull();
  });

  it('shows its webhook and the names of its variables, and no secret and no value', () => {
    const row = rowOf('sbx_1', {
      webhook_url: 'http://consumer.invalid/hook',
      watch_dir: '/work',
      webhook_secret_sealed: SEAL.seal('a-secret', 'sandbox/sbx_1/webhook_secret'),
      ...sealedEnv({ B: 'a-value', A: 'a-value' }, 'sbx_1', SEAL),
    });
    const view = sandboxView(row, SEAL);
    expect(view.webhook).toEqual({
      url: 'http://consumer.invalid/hook',
      watch_dir: '/work',
      watch_ignore: [],
      events: EVENT_TYPES,
      retry: 'transient',
      has_secret: true,
    });
    expect(view.env_names).toEqual(['A', 'B']);
    expect(JSON.stringify([view, statusView(row)])).not.toMatch(/a-secret|a-value|sealed/);
  });

  it('still shows that there was a secret once it is cleared', () => {
    const gone = { webhook_url: 'http://consumer.invalid/', webhook_secret_sealed: '', env_sealed: null };
    expect(sandboxView(rowOf('sbx_1', gone), SEAL)).toMatchObject({
      webhook: { has_secret: true },
      env_names: [],
    });
    const without = { webhook_url: 'http://consumer.invalid/', webhook_secret_sealed: null };
    expect(sandboxView(rowOf('sbx_1', without), SEAL)).toMatchObject({ webhook: { has_secret: false } });
  });

  it('has a short form for its status', () => {
    expect(Object.keys(statusView(rowOf('sbx_1')))).toEqual([
      ...['sandbox_id', 'template_id', 'team_id', 'pod_name', 'runtime_id', 'status'],
      ...['claimed_at', 'expires_at', 'hard_expires_at', 'created_at'],
    ]);
  });
});
