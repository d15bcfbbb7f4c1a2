import type { ManagedSandbox, SandboxView } from '../../contract/sandboxes.ts';
import { call, type Query } from './http.ts';

/** What a list of sandboxes is narrowed to. */
export interface SandboxFilter {
  status?: string | null;
  template_id?: string | null;
  /** Pairs `key:text`, all of which must match. */
  metadata?: string[];
  limit: number;
  offset: number;
}

/** A page of sandboxes; `count` is the number of all that match. */
export interface SandboxPage {
  sandboxes: ManagedSandbox[];
  count: number;
  has_more: boolean;
}

/** Durations of a fork, in seconds; what is left out is as in the sandbox that is copied. */
export interface ForkConfig {
  ttl?: number;
  hard_ttl?: number;
}

const of = (sandbox_id: string) => `/sandboxes/${encodeURIComponent(sandbox_id)}`;

/** The routes of sandboxes. Contract section 7, "Sandboxes". */
export const sandboxes = {
  list: (filter: SandboxFilter, signal?: AbortSignal) =>
    call<SandboxPage>('GET', '/sandboxes', { query: { ...filter } as Query, ...(signal ? { signal } : {}) }),
  one: (sandbox_id: string, signal: AbortSignal) => call<ManagedSandbox>('GET', of(sandbox_id), { signal }),
  claim: (body: object, idempotency_key: string) =>
    call<{ sandbox_id: string }>('POST', '/sandboxes', {
      json: body,
      headers: { 'idempotency-key': idempotency_key },
    }),
  change: (sandbox_id: string, config: object) =>
    call<ManagedSandbox>('PUT', of(sandbox_id), { json: { config } }),
  pause: (sandbox_id: string) => call('POST', `${of(sandbox_id)}/pause`),
  resume: (sandbox_id: string) => call('POST', `${of(sandbox_id)}/resume`),
  refresh: (sandbox_id: string) => call('POST', `${of(sandbox_id)}/refresh`),
  fork: (sandbox_id: string, config: ForkConfig) =>
    call<{ sandbox: ManagedSandbox }>('POST', `${of(sandbox_id)}/fork`, { json: { config } }),
  remove: (sandbox_id: string) => call('DELETE', of(sandbox_id)),
  /** What a daemon says of its own sandbox. Contract section 4, "The sandbox". */
  here: (signal: AbortSignal) => call<SandboxView>('GET', '/sandbox', { signal }),
};
