import type { Clock } from '../../base/clock.ts';
import type { HttpApp } from '../../base/http/app.ts';
import type { Log } from '../../base/log.ts';
import { ApiError } from '../../contract/errors.ts';
import { reasonOf } from '../database/database-errors.ts';

/** Lines about the requests of one team at once: what a person reads. */
const LINES_AT_ONCE = 20;
/** Time in ms after which a team has one more: 14 MB a day at most. */
const LINE_MS = 1_000;
/** Teams that are told apart. */
const TEAMS_MAX = 1_000;

interface TeamLines {
  left: number;
  at_ms: number;
  omitted: number;
}

/**
 * Log of requests that could not be served. Sandboxes decide how many there are, by not answering, so each team has only
 * so many lines; the next one has the number of those that were `omitted`.
 */
export class TroubleLog {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #teams = new Map<string, TeamLines>();

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Logs it, unless the team has had too many lines. `team_id`: empty where it is not known. */
  refused(team_id: string, facts: { request_id: string; reason: string }): void {
    const now_ms = this.#clock.monotonicMs();
    const lines = this.#teams.get(team_id) ?? { left: LINES_AT_ONCE, at_ms: now_ms, omitted: 0 };
    if (!this.#teams.has(team_id) && this.#teams.size >= TEAMS_MAX) this.#teams.clear();
    this.#teams.set(team_id, lines);
    const more = Math.floor((now_ms - lines.at_ms) / LINE_MS);
    lines.left = Math.min(LINES_AT_ONCE, lines.left + more);
    lines.at_ms += more * LINE_MS;
    if (lines.left === 0) {
      lines.omitted += 1;
      return;
    }
    lines.left -= 1;
    const { omitted } = lines;
    lines.omitted = 0;
    this.#log.warn({ ...facts, ...(omitted > 0 ? { omitted } : {}) }, 'a request was refused');
  }
}

/** Logs why the database or the runtime could not be used; the answer does not say. */
export function logTrouble(app: HttpApp, log: Log, clock: Clock): void {
  const trouble = new TroubleLog(log, clock);
  app.addHook('onError', async (request, _reply, error) => {
    if (!(error instanceof ApiError) || error.code !== 'unavailable') return;
    trouble.refused(request.caller?.team_id ?? '', { request_id: request.id, reason: reasonOf(error) });
  });
}
