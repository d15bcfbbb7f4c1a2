import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { QuotaRefusal } from '../../contract/error-details.ts';
import { ApiError } from '../../contract/errors.ts';
import type { RatePolicy } from '../../contract/quotas.ts';
import type { ManagerRoute } from '../../contract/routes/route.ts';
import type { Caller } from '../../contract/tokens.ts';
import type { Dimension } from '../../contract/words.ts';
import { quotaExceeded } from './admission.ts';
import type { QuotaMetrics } from './quota-metrics.ts';
import type { QuotaPolicies } from './quota-policies.ts';
import type { Drawn, RateAuthority } from './rate-authority.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** As the route's row says; what is in no row is charged as a request. */
    charge?: ManagerRoute['charge'];
  }
}

const UNREACHABLE_RETRY_S = 1;
/** The rates of what a call is charged to. */
const DIMENSIONS_OF = {
  request: ['api_requests'],
  claim: ['api_requests', 'sandbox_claims'],
  none: [],
} as const satisfies Record<ManagerRoute['charge'], readonly Dimension[]>;
/** Structured fields allow integers of at most 15 digits. */
const FIELD_MAX = 999_999_999_999_999;

/** A rate quota that a request was charged against, and the decision. */
interface Charged {
  dimension: Dimension;
  policy: RatePolicy;
  drawn: Drawn;
}

/** The dependencies of `RateCharges`. */
export interface RateParts {
  policies: QuotaPolicies;
  authority: RateAuthority;
  /** `--quota-fail-open`: admit while the authority cannot be reached. */
  is_fail_open: boolean;
  metrics: QuotaMetrics;
  clock: Clock;
  log: Log;
}

/** Charges requests against their team's rate quotas. Source: contract section 7, "Charging order". */
export class RateCharges {
  readonly #parts: RateParts;

  constructor(parts: RateParts) {
    this.#parts = parts;
  }

  /** Whether requests pass uncounted now: the authority cannot be reached, and quotas fail open. */
  get is_open(): boolean {
    return this.#parts.is_fail_open && !this.#parts.authority.is_reachable;
  }

  /**
   * Charges an authenticated request once, and sets its rate limit headers. Requests from behind the
   * external gateway and those of operators are not charged. Errors: `quota_exceeded`, and `unavailable` if the
   * authority cannot be reached and quotas fail closed.
   */
  async charge(caller: Caller, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (caller.is_internal) return;
    const { charge = 'request' } = request.routeOptions.config;
    const charged: Charged[] = [];
    for (const dimension of DIMENSIONS_OF[charge]) {
      const policy = await this.#parts.policies.rateOf(caller.team_id, dimension);
      if (!policy) continue;
      const drawn = await this.#draw(caller.team_id, dimension, policy);
      if (!drawn) continue;
      charged.push({ dimension, policy, drawn });
      reply.headers(rateLimitHeaders(charged));
      if (drawn.outcome === 'admitted') continue;
      reply.header('retry-after', String(wholeSeconds(drawn.retry_after_ms)));
      throw quotaExceeded({
        dimension,
        limit: policy.limit_value,
        current: null,
        requested: 1,
        retry_after_ms: drawn.retry_after_ms,
      });
    }
  }

  /** Null if the authority cannot be reached and quotas fail open. */
  async #draw(team_id: string, dimension: Dimension, policy: RatePolicy) {
    const { authority, metrics, is_fail_open, clock, log } = this.#parts;
    const began_ms = clock.monotonicMs();
    const decision = await authority.draw({ team_id, dimension }, policy, 1);
    metrics.draw_seconds.observe((clock.monotonicMs() - began_ms) / 1_000);
    if (decision.outcome !== 'unreachable') {
      metrics.decisions.add([dimension, decision.outcome]);
      return decision;
    }
    metrics.decisions.add([dimension, is_fail_open ? 'failed_open' : 'unreachable']);
    log.debug(
      { dimension, reason: decision.reason, is_fail_open },
      'the rate authority did not answer a charge',
    );
    if (is_fail_open) return null;
    const text = 'The rate authority cannot be reached, and quotas fail closed. Try again later.';
    throw new ApiError('unavailable', text, { retry_after_s: UNREACHABLE_RETRY_S });
  }
}

/**
 * `RateLimit-Policy` and `RateLimit` as the IETF draft defines them: quota and window of the policy in seconds, tokens
 * left and seconds until the next token. Source: contract section 7, the paragraph on errors.
 */
export function rateLimitHeaders(charged: readonly Charged[]): Record<string, string> {
  if (charged.length === 0) return {};
  const policies = charged.map(
    ({ dimension, policy }) =>
      `"${dimension}";q=${number(policy.limit_value)};w=${number(wholeSeconds(policy.interval_ms))}`,
  );
  const states = charged.map(
    ({ dimension, drawn }) =>
      `"${dimension}";r=${number(drawn.remaining)};t=${number(wholeSeconds(drawn.next_token_ms))}`,
  );
  return { 'ratelimit-policy': policies.join(', '), ratelimit: states.join(', ') };
}

/** Sets the `X-RateLimit-…` headers of a 429, which older clients read, for capacities and rates alike. */
export function quotaRefusalHeaders({ code, details }: ApiError, reply: FastifyReply): void {
  if (code !== 'quota_exceeded') return;
  const { limit, current } = details as QuotaRefusal;
  const remaining = current === null ? 0 : Math.max(0, limit - current);
  reply.headers({ 'x-ratelimit-limit': String(limit), 'x-ratelimit-remaining': String(remaining) });
}

/** Milliseconds as whole seconds, rounded up so that a client that waits is not early. */
function wholeSeconds(duration_ms: number): number {
  return Math.ceil(duration_ms / 1_000);
}

function number(value: number): string {
  return String(Math.min(value, FIELD_MAX));
}
