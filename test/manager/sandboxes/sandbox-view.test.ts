import { describe, expect, it } from 'vitest';
import { optionalTimestamp, sandboxView, statusView } from '../../../src/manager/sandboxes/sandbox-view.ts';
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
    expect(sandboxView(row)).toEqual({
      id: 'sbx_1',
      template_id: 'default',
      team_id: 'team_1',
      status: 'running',
      paused: false,
      auto_resume: false,
      pod_name: null,
      runtime_generation: 1,
      resources: { memory: '512Mi', cpu: 0.1 },
      expires_at: null,
      hard_expires_at: null,
      claimed_at: null,
      created_at: '2026-01-01T00:00:00.000Z',
      updated_at: '2026-01-01T00:00:00.001Z',
    });
  });

  it('shows times in UTC with milliseconds', () => {
    const row = rowOf('sbx_1', { expires_at_ms: AT_MS + 1_500, hard_expires_at_ms: AT_MS + 86_400_000 });
    expect(sandboxView(row)).toMatchObject({
      expires_at: '2026-01-01T00:00:01.500Z',
      hard_expires_at: '2026-01-02T00:00:00.000Z',
    });
    expect(optionalTimestamp(0)).toBe('1970-01-01T00:00:00.000Z');
  });

  it('is paused in that status alone', () => {
    for (const status of ['starting', 'running', 'paused', 'terminating', 'failed'] as const) {
      expect(sandboxView(rowOf('sbx_1', { status }))).toMatchObject({ status, paused: status === 'paused' });
    }
    expect(sandboxView(rowOf('sbx_1', { auto_resume: 1 })).auto_resume).toBe(true);
  });

  it('shows no secret', () => {
    const row = rowOf('sbx_1', { webhook_secret_sealed: 'sealed-secret', env_sealed: 'sealed-env' });
    expect(JSON.stringify([sandboxView(row), statusView(row)])).not.toContain('sealed');
  });

  it('has a short form for its status', () => {
    expect(Object.keys(statusView(rowOf('sbx_1')))).toEqual([
      ...['sandbox_id', 'template_id', 'team_id', 'pod_name', 'status'],
      ...['claimed_at', 'expires_at', 'hard_expires_at', 'created_at'],
    ]);
  });
});
