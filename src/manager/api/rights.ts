import type { FastifyReply, FastifyRequest } from 'fastify';
import { isUpgrade } from '../../base/http/listener.ts';
import type { Job } from '../../base/schedule.ts';
import { RIGHTS_POLL_MS } from '../../contract/defaults.ts';
import { ApiError, errorBody } from '../../contract/errors.ts';
import type { ManagerAccess } from '../../contract/routes/route.ts';
import { type Caller, includesTokenScope, type Scope } from '../../contract/tokens.ts';
import type { TokenStore } from '../database/token-store.ts';

/** The scope that a token needs for what a route demands; null if any will do. */
export function scopeOf(demands: ManagerAccess | 'token'): Scope | null {
  return demands === 'token' || demands === 'open' ? null : demands;
}

/** Ends a call whose token no longer allows it. */
type Cut = () => void;

/** The right of one call under way: a token that is valid and has the scope. */
export class Right {
  readonly scope: Scope | null;
  #cut: Cut | null;

  constructor(scope: Scope | null, cut: Cut) {
    this.scope = scope;
    this.#cut = cut;
  }

  /** How the call ends from now on; at once where its right has gone already. */
  onLoss(cut: Cut): void {
    if (this.#cut === null) cut();
    else this.#cut = cut;
  }

  /** Ends the call; once. */
  lose(): void {
    const cut = this.#cut;
    this.#cut = null;
    cut?.();
  }
}

/**
 * The rights of all calls under way, of every route, asked for again while they last: a token that was revoked ends its
 * streams, waits and transfers. Source: contract section 7, "Bearer tokens".
 */
export class Rights implements Job {
  readonly name = 'rights';
  readonly #tokens: TokenStore;
  /** By the ids of their tokens. */
  readonly #held = new Map<string, Set<Right>>();

  constructor(tokens: TokenStore) {
    this.#tokens = tokens;
  }

  /** Holds the right of an authenticated call until it is released. */
  hold({ actor }: Caller, request: FastifyRequest, reply: FastifyReply): Right {
    const { demands = 'token' } = request.routeOptions.config;
    const right = new Right(scopeOf(demands), () => refuse(request, reply));
    const held = this.#held.get(actor);
    if (held) held.add(right);
    else this.#held.set(actor, new Set([right]));
    return right;
  }

  /** Call when the call is over. */
  release({ actor }: Caller, right: Right): void {
    const held = this.#held.get(actor);
    held?.delete(right);
    if (held?.size === 0) this.#held.delete(actor);
  }

  /** Ends the calls whose token does not allow them any more; rejects, and ends none, if the database does not say. */
  readonly run = async (): Promise<number> => {
    const asked = [...this.#held];
    const valid = await this.#tokens.scopes(asked.map(([token_id]) => token_id));
    for (const [token_id, rights] of asked) {
      const scopes = valid.get(token_id);
      for (const right of rights) {
        if (!scopes || (right.scope !== null && !includesTokenScope(scopes, right.scope))) right.lose();
      }
    }
    return RIGHTS_POLL_MS;
  };
}

/** The error that ends a call whose token was revoked meanwhile. */
export function revoked(): ApiError {
  return new ApiError('unauthorized', 'The token was revoked.');
}

/** Answers in place of the route if its answer has not begun; otherwise the connection is cut. */
function refuse(request: FastifyRequest, reply: FastifyReply): void {
  const { raw } = reply;
  if (isUpgrade(request) || reply.sent || raw.headersSent) {
    request.raw.socket.destroy();
    return;
  }
  reply.hijack();
  const body = JSON.stringify(errorBody(revoked()));
  const headers = { 'content-type': 'application/json; charset=utf-8', 'www-authenticate': 'Bearer' };
  raw.writeHead(401, { ...headers, connection: 'close', 'content-length': Buffer.byteLength(body) });
  raw.end(body);
}
