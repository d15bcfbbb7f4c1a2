import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { type HttpApp, success } from '../../base/http/app.ts';
import { idempotencyKeyOf } from '../../base/http/idempotency-key.ts';
import { NoQuery } from '../../contract/schema/query.ts';
import type { Seal } from '../database/seal.ts';
import type { Claims } from '../sandboxes/claims.ts';
import type { Deletions } from '../sandboxes/deletion.ts';
import type { Forks } from '../sandboxes/forks.ts';
import type { TrafficMetering } from '../sandboxes/ports.ts';
import { ChangeBody, ClaimBody, ForkBody, RefreshBody, SwitchBody } from '../sandboxes/request-schemas.ts';
import { type ClaimRules, changeRequest, claimRequest, forkRequest } from '../sandboxes/requests.ts';
import type { ManagedSandboxRow, SandboxStore } from '../sandboxes/sandbox-store.ts';
import { optionalTimestamp, sandboxView, statusView } from '../sandboxes/sandbox-view.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import type { SandboxRef } from '../sandboxes/transition-runner.ts';
import { callerOf } from './auth.ts';
import { CHANGE_KEYS, CLAIM_KEYS, withoutUnbuilt } from './not-built.ts';
import { SANDBOX_DOCS } from './sandbox-docs.ts';
import { ListQuery, OneQuery, SandboxParams } from './schemas.ts';

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

const PATH = '/api/v1/sandboxes';
const read = 'sandboxes:read' as const;
const write = 'sandboxes:write' as const;
/** The path and the query of the routes of one sandbox. */
const one = { params: SandboxParams, querystring: NoQuery };

/** Registers the routes that claim, list, change and delete sandboxes. Source: contract section 7, rows `/api/v1/sandboxes…`. */
export function registerSandboxRoutes(app: HttpApp, parts: SandboxRouteParts): void {
  registerClaim(app, parts);
  registerReads(app, parts);
  registerChanges(app, parts);
  registerTransitions(app, parts);
}

function registerClaim(app: HttpApp, { claims, claim_rules }: SandboxRouteParts): void {
  const schema = { body: ClaimBody, querystring: NoQuery };
  const options = {
    config: { scope: write, doc: SANDBOX_DOCS.claim },
    schema,
    preValidation: withoutUnbuilt(CLAIM_KEYS),
  };
  app.post(PATH, options, async (request, reply) => {
    const body = request.body as Static<typeof ClaimBody> | undefined;
    const claimed = await claims.claim(callerOf(request), claimRequest(body, claim_rules), keyOf(request));
    reply.code(201);
    return success(claimed);
  });
}

function registerReads(app: HttpApp, parts: SandboxRouteParts): void {
  const { store, sandboxes, seal, traffic } = parts;
  const schema = { querystring: ListQuery };
  app.get(PATH, { config: { scope: read, doc: SANDBOX_DOCS.list }, schema }, async (request) => {
    const { offset } = request.query;
    const { rows, count } = await store.list(callerOf(request).team_id, request.query);
    const usages = await traffic.lastSeen(rows.map(({ sandbox_id }) => sandbox_id));
    return success({
      sandboxes: rows.map((row) => sandboxView(row, seal, usages.get(row.sandbox_id))),
      count,
      has_more: offset + rows.length < count,
    });
  });

  app.get(
    `${PATH}/:sandbox_id`,
    { config: { scope: read, doc: SANDBOX_DOCS.record }, schema: { ...one, querystring: OneQuery } },
    async (request) => {
      const { include_deleted } = request.query;
      const row = await (include_deleted ? sandboxes.getKept(named(request)) : sandboxes.get(named(request)));
      return success(await recordOf(row, parts));
    },
  );

  app.get(
    `${PATH}/:sandbox_id/status`,
    { config: { scope: read, doc: SANDBOX_DOCS.status }, schema: one },
    async (request) => {
      return success(statusView(await sandboxes.get(named(request))));
    },
  );
}

function registerChanges(app: HttpApp, parts: SandboxRouteParts): void {
  const { sandboxes, deletions } = parts;
  app.put(
    `${PATH}/:sandbox_id`,
    {
      config: { scope: write, doc: SANDBOX_DOCS.change },
      schema: { ...one, body: ChangeBody },
      preValidation: withoutUnbuilt(CHANGE_KEYS),
    },
    async (request) => {
      const change = changeRequest(request.body as Static<typeof ChangeBody>);
      return success(await recordOf(await sandboxes.change(named(request), change), parts));
    },
  );

  app.post(
    `${PATH}/:sandbox_id/refresh`,
    { config: { scope: write, doc: SANDBOX_DOCS.refresh }, schema: { ...one, body: RefreshBody } },
    async (request) => {
      const { duration } = (request.body ?? {}) as Static<typeof RefreshBody>;
      const row = await sandboxes.refresh(named(request), duration);
      return success({
        sandbox_id: row.sandbox_id,
        expires_at: optionalTimestamp(row.expires_at_ms),
        hard_expires_at: optionalTimestamp(row.hard_expires_at_ms),
      });
    },
  );

  app.delete(
    `${PATH}/:sandbox_id`,
    { config: { scope: write, doc: SANDBOX_DOCS.remove }, schema: one },
    async (request, reply) => {
      const { actor, team_id } = callerOf(request);
      await deletions.delete(request.params.sandbox_id, team_id, { reason: 'api', actor });
      reply.code(202);
      return success({ message: 'The sandbox is being deleted.' });
    },
  );
}

function registerTransitions(app: HttpApp, parts: SandboxRouteParts): void {
  const { sandboxes, forks } = parts;
  app.post(
    `${PATH}/:sandbox_id/pause`,
    { config: { scope: write, doc: SANDBOX_DOCS.pause }, schema: { ...one, body: SwitchBody } },
    async (request) => {
      const { reason, memory } = switchOf(request);
      const paused = await sandboxes.pause(named(request), reason, null, memory);
      const { sandbox_id, status, memory: kept } = paused;
      return success({ sandbox_id, paused: true, status, memory: kept });
    },
  );

  app.post(
    `${PATH}/:sandbox_id/resume`,
    { config: { scope: write, doc: SANDBOX_DOCS.resume }, schema: { ...one, body: SwitchBody } },
    async (request) => {
      const { reason, memory } = switchOf(request);
      const { sandbox_id, memory: kept } = await sandboxes.resume(named(request), reason, memory);
      return success({ sandbox_id, resumed: true, memory: kept });
    },
  );

  app.post(
    `${PATH}/:sandbox_id/fork`,
    { config: { scope: write, doc: SANDBOX_DOCS.fork }, schema: { ...one, body: ForkBody } },
    async (request, reply) => {
      const body = (request.body ?? {}) as Static<typeof ForkBody>;
      const child = await forks.fork(named(request), forkRequest(body, parts.claim_rules));
      reply.code(201);
      return success({
        source_sandbox_id: request.params.sandbox_id,
        sandbox: await recordOf(child, parts),
        memory: false,
      });
    },
  );
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

function switchOf(request: FastifyRequest): { reason: string | null; memory: boolean } {
  const { reason = null, memory = true } = (request.body ?? {}) as Static<typeof SwitchBody>;
  return { reason, memory };
}

function keyOf(request: FastifyRequest): string | null {
  return idempotencyKeyOf(request.headers['idempotency-key']) ?? null;
}
