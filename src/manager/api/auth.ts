import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpApp } from '../../base/http/app.ts';
import { isUpgrade } from '../../base/http/listener.ts';
import { onceOver } from '../../base/http/sse-response.ts';
import { ApiError } from '../../contract/errors.ts';
import type { ManagerAccess } from '../../contract/routes/route.ts';
import { tokenOfProtocols } from '../../contract/socket-token.ts';
import { type Caller, includesTokenScope, type Scope } from '../../contract/tokens.ts';
import type { TokenStore } from '../database/token-store.ts';
import { type Right, type Rights, scopeOf } from './rights.ts';
import { RequestShares } from './team-connections.ts';
import { TeamTurns } from './team-turns.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the caller needs: as the route's row says, or any token. */
    demands?: ManagerAccess | 'token';
    /** Its WebSocket may prove the caller by a subprotocol, which browsers can set. */
    takes_socket_token?: boolean;
  }
  interface FastifyRequest {
    /** Set before any handler of a route that is not open. */
    caller: Caller | null;
    /** Lost while the call lasts if its token is revoked; set with `caller`. */
    right: Right | null;
    /** Ends its share of the requests under way before its answer does; for those with a share of their own. */
    leaveShare: () => void;
  }
}

/** Charges a request to the caller's quotas, before the scope is checked. Throws `quota_exceeded`. */
export type Charge = (caller: Caller, request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * Authenticates every request and checks its scope; throws `unauthorized`, `forbidden`, or `too_many_requests` where the
 * caller has too many under way. A route that does not say what it demands is refused. Source: contract section 7, "Bearer
 * tokens" and "Limits of a team".
 */
export function guardRoutes(
  app: HttpApp,
  tokens: TokenStore,
  charge: Charge,
  rights: Rights,
  shares = new RequestShares(),
): void {
  const turns = new TeamTurns();
  app.decorateRequest('caller', null);
  app.decorateRequest('right', null);
  app.decorateRequest('leaveShare', () => {});
  app.addHook('onRequest', async (request, reply) => {
    const { demands } = request.routeOptions.config;
    if (demands === 'open' || request.is404) return;
    const call = isUpgrade(request) ? request.raw.socket : reply.raw;
    const leaveAddress = shares.acquire(`address ${request.ip}`);
    onceOver(call, leaveAddress);
    const caller = await authenticate(request, reply, tokens);
    request.caller = caller;
    leaveAddress();
    // Before it counts among those under way: a burst of more than may be under way waits for its turns.
    await turns.take(caller.team_id);
    const leaveShare = shares.acquire(`team ${caller.team_id}`);
    request.leaveShare = leaveShare;
    const right = rights.hold(caller, request, reply);
    request.right = right;
    onceOver(call, () => {
      leaveShare();
      rights.release(caller, right);
    });
    await charge(caller, request, reply);
    if (demands === undefined) throw new ApiError('forbidden');
    const scope = scopeOf(demands);
    if (scope !== null) demand(caller, scope);
  });
}

/** Throws `forbidden` if the caller's token lacks the scope. */
function demand({ scopes }: Caller, scope: Scope): void {
  if (includesTokenScope(scopes, scope)) return;
  throw new ApiError('forbidden', `The token's scopes do not include ${scope}.`, { scope });
}

/** The caller of a request; for handlers of routes that are not open. Throws `unauthorized`. */
export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new ApiError('unauthorized', TOKEN_REQUIRED);
  return request.caller;
}

const TOKEN_REQUIRED = 'A valid bearer token is required.';

async function authenticate(
  request: FastifyRequest,
  reply: FastifyReply,
  tokens: TokenStore,
): Promise<Caller> {
  const token = tokenOf(request);
  const caller = token === null ? null : await tokens.find(token);
  if (caller) return caller;
  reply.header('www-authenticate', 'Bearer');
  throw new ApiError('unauthorized', TOKEN_REQUIRED);
}

function tokenOf(request: FastifyRequest): string | null {
  const { authorization, 'sec-websocket-protocol': protocols } = request.headers;
  const { takes_socket_token } = request.routeOptions.config;
  if (authorization === undefined && takes_socket_token === true && isUpgrade(request)) {
    return tokenOfProtocols(protocols);
  }
  return /^Bearer +([\x21-\x7e]+)$/i.exec(authorization ?? '')?.[1] ?? null;
}
