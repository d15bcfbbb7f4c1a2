import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { idempotencyKeyOf } from '../../base/http/idempotency-key.ts';
import type { SwitchBody } from '../../contract/sandboxes.ts';
import type { Seal } from '../database/seal.ts';
import type { Claims } from '../sandboxes/claims.ts';
import type { Deletions } from '../sandboxes/deletion.ts';
import type { Forks } from '../sandboxes/forks.ts';
import type { TrafficMetering } from '../sandboxes/ports.ts';
import { type ClaimRules, changeRequest, claimRequest, forkRequest } from '../sandboxes/requests.ts';
import type { ManagedSandboxRow, SandboxStore } from '../sandboxes/sandbox-store.ts';
import { optionalTimestamp, sandboxView, statusView } from '../sandboxes/sandbox-view.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import type { SandboxRef } from '../sandboxes/transition-runner.ts';
import { callerOf } from './auth.ts';
import type { ApiHandlers } from './routes.ts';

/** What the sandbox routes need. */
export interface SandboxRouteParts {
  store: SandboxStore;
  claims: Claims;
  sandboxes: Sandboxes;
  forks: Forks;
  deletions: Deletions;
  claim_rules: ClaimRules;
  seal: Seal;
  traffic: TrafficMetering;
}

/** The routes that claim, list, change and delete sandboxes. Source: contract section 7, rows `/api/v1/sandboxes…`. */
export function sandboxHandlers(parts: SandboxRouteParts) {
  const { store, sandboxes, claims, claim_rules, seal, traffic } = parts;
  return {
    claimSandbox({ body, request }) {
      const key = idempotencyKeyOf(request.headers['idempotency-key']) ?? null;
      return claims.claim(callerOf(request), claimRequest(body, claim_rules), key);
    },

    async listSandboxes({ query, request }) {
      const { rows, count } = await store.list(callerOf(request).team_id, query);
      const usages = await traffic.lastSeen(rows.map(({ sandbox_id }) => sandbox_id));
      return {
        sandboxes: rows.map((row) => sandboxView(row, seal, usages.get(row.sandbox_id))),
        count,
        has_more: query.offset + rows.length < count,
      };
    },

    async getSandbox({ query: { include_deleted }, request }) {
      const row = await (include_deleted ? sandboxes.getKept(named(request)) : sandboxes.get(named(request)));
      return recordOf(row, parts);
    },

    async changeSandbox({ body, request }) {
      return recordOf(await sandboxes.change(named(request), changeRequest(body)), parts);
    },

    async deleteSandbox({ params, request }) {
      const { actor, team_id } = callerOf(request);
      await parts.deletions.delete(params.sandbox_id, team_id, { reason: 'api', actor });
      return { message: 'The sandbox is being deleted.' };
    },

    async getSandboxStatus({ request }) {
      return statusView(await sandboxes.get(named(request)));
    },

    async refreshSandbox({ body, request }) {
      const row = await sandboxes.refresh(named(request), body?.duration);
      return {
        sandbox_id: row.sandbox_id,
        expires_at: optionalTimestamp(row.expires_at_ms),
        hard_expires_at: optionalTimestamp(row.hard_expires_at_ms),
      };
    },

    ...transitionHandlers(parts),
  } satisfies Partial<ApiHandlers>;
}

function transitionHandlers(parts: SandboxRouteParts) {
  const { sandboxes, forks } = parts;
  return {
    async pauseSandbox({ body, request }) {
      const { reason, memory } = switchOf(body);
      const paused = await sandboxes.pause(named(request), reason, null, memory);
      const { sandbox_id, status, memory: kept } = paused;
      return { sandbox_id, paused: true, status, memory: kept };
    },

    async resumeSandbox({ body, request }) {
      const { reason, memory } = switchOf(body);
      const { sandbox_id, memory: kept } = await sandboxes.resume(named(request), reason, memory);
      return { sandbox_id, resumed: true, memory: kept };
    },

    async forkSandbox({ params, body = {}, request }) {
      const child = await forks.fork(named(request), forkRequest(body, parts.claim_rules));
      return {
        source_sandbox_id: params.sandbox_id,
        sandbox: await recordOf(child, parts),
        memory: false,
      };
    },
  } satisfies Partial<ApiHandlers>;
}

/** A sandbox as it is now. */
async function recordOf(row: ManagedSandboxRow, { seal, traffic }: SandboxRouteParts) {
  return sandboxView(row, seal, await traffic.usage(row.sandbox_id));
}

/** The sandbox of the path, as one of the caller's team. */
function named(request: FastifyRequest): SandboxRef {
  const { sandbox_id } = request.params as { sandbox_id: string };
  return { sandbox_id, team_id: callerOf(request).team_id };
}

function switchOf(body: Static<typeof SwitchBody> = {}) {
  return { reason: body.reason ?? null, memory: body.memory ?? true };
}
