import { daemon, manager } from './client.ts';
import type { ChangeConfig, ClaimBody, ForkConfig, SandboxFilter } from './managed-sandbox.ts';

const ONE = '/api/v1/sandboxes/{sandbox_id}';

/** The routes of sandboxes. Contract section 7, "Sandboxes". */
export const sandboxes = {
  list: (query: SandboxFilter, signal?: AbortSignal) =>
    manager.GET('/api/v1/sandboxes', { query, ...(signal ? { signal } : {}) }),
  one: (sandbox_id: string, signal: AbortSignal) =>
    manager.GET(ONE, { path: { sandbox_id }, query: { include_deleted: true }, signal }),
  claim: (body: ClaimBody, idempotency_key: string) =>
    manager.POST('/api/v1/sandboxes', { body, headers: { 'idempotency-key': idempotency_key } }),
  change: (sandbox_id: string, config: ChangeConfig) =>
    manager.PUT(ONE, { path: { sandbox_id }, body: { config } }),
  pause: (sandbox_id: string) => manager.POST(`${ONE}/pause`, { path: { sandbox_id } }),
  resume: (sandbox_id: string) => manager.POST(`${ONE}/resume`, { path: { sandbox_id } }),
  refresh: (sandbox_id: string) => manager.POST(`${ONE}/refresh`, { path: { sandbox_id } }),
  fork: (sandbox_id: string, config: ForkConfig) =>
    manager.POST(`${ONE}/fork`, { path: { sandbox_id }, body: { config } }),
  remove: (sandbox_id: string) => manager.DELETE(ONE, { path: { sandbox_id } }),
  /** What a daemon says of its own sandbox. Contract section 4, "The sandbox". */
  here: (signal: AbortSignal) => daemon.GET('/api/v1/sandbox', { signal }),
};
