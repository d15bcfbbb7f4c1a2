import type { Log } from '../../base/log.ts';
import { gauge, type Metric } from '../../base/metrics.ts';
import type { Job } from '../../base/schedule.ts';
import type { KeptSandbox, Runtime } from '../../runtime/runtime.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import { NOTHING_TAKEN, type NodeUse, UNBOUNDED_DISK_MIB } from '../quotas/quota-store.ts';
import type { RecordedStore } from './recorded-store.ts';

const LOOK_MS = 10_000;
/** As long as an operation's lease: by then a replica that makes a sandbox, or undoes one, has done so. */
const MADE_WITHIN_MS = 15_000;
/** The first 12 hex digits of a UUIDv7 are its time. */
const ID_TIME = /^sbx_([0-9a-f]{8})-([0-9a-f]{4})-7/;

/** What `Orphans` works with. */
export interface OrphansParts {
  runtime: Pick<Runtime, 'list' | 'kept' | 'closeOff'>;
  store: Pick<RecordedStore, 'recorded'>;
  /** Whether a sandbox has just been found recorded, so that the database need not be asked again. */
  wasRecorded: (sandbox_id: string) => boolean;
  /** Whether another data directory has become the database's since the start. */
  hasMoved: () => Promise<boolean>;
  clock: Pick<DatabaseClock, 'wallMs' | 'monotonicMs'>;
  log: Log;
}

/** What was seen of a sandbox that no row of the database knows. */
interface Stranger {
  first_seen_ms: number;
  /** Whether it is too old to be a claim or deletion under way. */
  is_orphan: boolean;
  kept: KeptSandbox;
}

/**
 * The orphans: sandboxes that are here and not recorded, once that is no claim or deletion under way. They are told, counted
 * in the node's budget, and cut off; what becomes of them an operator says. Source: contract section 7, "What runs and what
 * is recorded".
 */
export class Orphans {
  readonly #parts: OrphansParts;
  #strangers = new Map<string, Stranger>();
  #has_moved = false;

  constructor(parts: OrphansParts) {
    this.#parts = parts;
  }

  /** Whether a sandbox is known to be one. */
  has(sandbox_id: string): boolean {
    return this.#strangers.get(sandbox_id)?.is_orphan === true;
  }

  /** What they take of the node, or with `team_id` those of a team, with those that may be none yet. */
  use(team_id: string | null = null): NodeUse {
    const use = { ...NOTHING_TAKEN };
    for (const { kept } of this.#strangers.values()) {
      const { state, memory_mib, cpu_millis, disk_mib, held_mib } = kept;
      if (team_id !== null && team_id !== kept.team_id) continue;
      use.disk_mib += disk_mib ?? UNBOUNDED_DISK_MIB;
      if (state === 'paused') {
        use.paused += 1;
        use.memory_mib += held_mib ?? memory_mib;
        use.paused_memory_mib += held_mib ?? memory_mib;
      }
      if (state !== 'running') continue;
      use.active += 1;
      use.memory_mib += memory_mib;
      use.cpu_millis += cpu_millis;
    }
    return use;
  }

  /** Why `/readyz` says `degraded`, or null. */
  trouble(): string | null {
    if (this.#has_moved) return 'another data directory has become the one of the database';
    const count = this.#count;
    return count === 0 ? null : `${count} sandboxes here are not recorded: sandbox-manager orphans list`;
  }

  /** The metric for the registry. */
  metrics(): Metric[] {
    const help = 'Sandboxes that are here and that the database does not know.';
    return [gauge('runtime_orphans', help, () => this.#count)];
  }

  /** The job that looks again and again. */
  job(): Job {
    return {
      name: 'orphans',
      run: async () => {
        await this.look();
        return LOOK_MS;
      },
    };
  }

  /** Compares what is here with what is recorded. Rejects if either cannot be read. */
  async look(): Promise<void> {
    const { runtime, clock, hasMoved, log } = this.#parts;
    this.#has_moved = await hasMoved();
    const now_ms = clock.monotonicMs();
    const strangers = new Map<string, Stranger>();
    for (const sandbox_id of await this.#unrecorded()) {
      const { first_seen_ms = now_ms } = this.#strangers.get(sandbox_id) ?? {};
      const is_orphan = now_ms - first_seen_ms >= MADE_WITHIN_MS || isOld(sandbox_id, clock.wallMs());
      const kept = await runtime.kept(sandbox_id).catch((error: Error) => {
        // One whose record is damaged hides no other.
        log.warn({ sandbox_id, reason: error.message }, 'what is kept of a sandbox cannot be read');
        return this.#strangers.get(sandbox_id)?.kept ?? null;
      });
      if (kept === null) continue;
      if (is_orphan && !this.has(sandbox_id)) await this.#tell(sandbox_id, kept);
      strangers.set(sandbox_id, { first_seen_ms, is_orphan, kept });
    }
    this.#strangers = strangers;
  }

  /** A row is made before its sandbox, and kept until that is gone: what is still here after its row was looked for has none. */
  async #unrecorded(): Promise<string[]> {
    const { runtime, store, wasRecorded } = this.#parts;
    const ids = (await runtime.list()).filter((sandbox_id) => !wasRecorded(sandbox_id));
    const recorded = await store.recorded(ids);
    const unrecorded = ids.filter((sandbox_id) => !recorded.has(sandbox_id));
    if (unrecorded.length === 0) return [];
    const here = new Set(await runtime.list());
    return unrecorded.filter((sandbox_id) => here.has(sandbox_id));
  }

  async #tell(sandbox_id: string, { team_id, state }: KeptSandbox): Promise<void> {
    this.#parts.log.error({ sandbox_id, team_id, state }, 'a sandbox is here that is not recorded');
    await this.#parts.runtime.closeOff(sandbox_id);
  }

  get #count(): number {
    return [...this.#strangers.values()].filter(({ is_orphan }) => is_orphan).length;
  }
}

/** Whether a sandbox's id is older than whatever makes or undoes it can take. */
function isOld(sandbox_id: string, now_ms: number): boolean {
  const made_ms = madeMs(sandbox_id);
  return made_ms !== null && now_ms - made_ms >= MADE_WITHIN_MS;
}

/** The time of a sandbox's id, wall time in ms; null for an id of another form. */
export function madeMs(sandbox_id: string): number | null {
  const [, high, low] = ID_TIME.exec(sandbox_id) ?? [];
  return high === undefined ? null : Number.parseInt(`${high}${low}`, 16);
}
