import { systemClock } from '../../base/clock.ts';
import { StartError } from '../../contract/errors.ts';
import { DatabaseClock } from '../database/database-clock-store.ts';
import { withDatabase } from '../ownership/with-database.ts';
import { PruneStore } from './prune-store.ts';

/** What is to be removed, as given on the command line. Times are RFC 3339, or dates in UTC. */
export interface PruneTexts {
  usageBefore?: string;
  tokensBefore?: string;
  teams?: boolean;
  dryRun?: boolean;
}

/** How many rows of each kind were removed, or would be; null: it was not asked for. */
export interface Pruned {
  usage_windows: number | null;
  tokens: number | null;
  teams: number | null;
}

/**
 * The command `sandbox-manager prune`: removes what is kept for ever, beside running managers. Throws StartError for invalid
 * arguments.
 */
export async function prune(url: string, given: PruneTexts): Promise<Pruned> {
  const { usageBefore, tokensBefore, teams = false, dryRun = false } = given;
  if (usageBefore === undefined && tokensBefore === undefined && !teams) {
    throw new StartError('nothing to prune: --usage-before, --tokens-before or --teams is required', 2);
  }
  const texts: [string, string | undefined][] = [
    ['--usage-before', usageBefore],
    ['--tokens-before', tokensBefore],
  ];
  const times = texts.map(([name, text]) => (text === undefined ? null : timeOf(name, text)));
  return withDatabase(url, async (database) => {
    const clock = await DatabaseClock.open(database, systemClock);
    const store = new PruneStore(database, clock);
    for (const [index, ms] of times.entries()) {
      if (ms !== null && ms > store.last_ms)
        throw new StartError(`${texts[index]?.[0]} must be at least a day ago`, 2);
    }
    const [usage_ms = null, tokens_ms = null] = times;
    return {
      usage_windows: usage_ms === null ? null : await store.windows(usage_ms, dryRun),
      tokens: tokens_ms === null ? null : await store.tokens(tokens_ms, dryRun),
      teams: teams ? await store.teams(dryRun) : null,
    };
  });
}

function timeOf(name: string, text: string): number {
  const is_time = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))?$/.test(text);
  const ms = is_time ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) {
    throw new StartError(`${name} ${text} must be a date, such as 2026-01-31, or an RFC 3339 time`, 2);
  }
  return ms;
}
