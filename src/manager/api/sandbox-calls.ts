import type { FastifyReply, FastifyRequest } from 'fastify';
import { isUpgrade } from '../../base/http/listener.ts';
import { onceOver } from '../../base/http/sse-response.ts';
import type { Passed } from '../../contract/routes/route.ts';
import type { ManagedSandboxRow } from '../sandboxes/sandbox-store.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { transitionError } from '../sandboxes/transitions.ts';
import type { Uses } from '../sandboxes/uses.ts';
import { callerOf } from './auth.ts';
import type { PassedShares } from './team-connections.ts';

/** What is needed to let calls into sandboxes. */
export interface SandboxCallParts {
  shares: PassedShares;
  sandboxes: Sandboxes;
  uses: Uses;
}

/**
 * Lets a call into a sandbox of the caller's team: it takes a share of the team's, resumes a paused sandbox that may be, and,
 * where the call is a use, counts as one until it has ended. Throws `too_many_requests`, `not_found`, `conflict`, and what a
 * resume throws. Source: contract section 7, `auto_resume` and `idle_ttl`.
 */
export async function admitCall(
  { shares, sandboxes, uses }: SandboxCallParts,
  { answered_by, is_use }: Pick<Passed, 'answered_by' | 'is_use'>,
  sandbox_id: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<ManagedSandboxRow> {
  const { team_id } = callerOf(request);
  const named = { sandbox_id, team_id };
  // A WebSocket ends with its connection.
  const call = isUpgrade(request) ? request.raw.socket : reply.raw;
  onceOver(call, shares.acquire(team_id));
  request.leaveShare();
  for (;;) {
    const row = await (answered_by === 'running' ? sandboxes.running(named) : up(sandboxes, named));
    if (!is_use) return row;
    const { is_noted, end } = await uses.begin(row);
    if (is_noted || answered_by === 'up') {
      onceOver(call, end);
      return row;
    }
    // It was idle, and is being paused since it was read.
    end();
  }
}

async function up(sandboxes: Sandboxes, named: { sandbox_id: string; team_id: string }) {
  const row = await sandboxes.get(named);
  const { status } = row;
  if (status !== 'running' && status !== 'paused') throw transitionError({ refused: 'status', status });
  return row;
}
