import type { Trust } from '../outbox/sqlite/undelivered/belief.ts';
import type { UndeliveredPage, UndeliveredRecord } from '../outbox/sqlite/undelivered/undelivered-record.ts';

export type { UndeliveredPage, UndeliveredRecord };

/** Where a sandbox's events go. `watch_dir` is an absolute path inside the sandbox, or null. */
export interface RuntimeWebhook {
  url: string;
  /** Empty: nothing is signed. It reaches the sandbox's daemon over its control socket and is kept nowhere else. */
  secret: string;
  watch_dir: string | null;
}

/** What a hand-over believes a sandbox's records by. */
export type HandOverTrust = Omit<Trust, 'sandbox_id'>;

/** What a sandbox is made of. Source: contract section 7, POST `/api/v1/sandboxes`. */
export interface RuntimeSpec {
  /** 1 to 64 of `A-Z a-z 0-9 _ - .`, not beginning with a dot: it names the sandbox's directory. */
  sandbox_id: string;
  team_id: string;
  webhook: RuntimeWebhook | null;
  /** What its processes get in addition to the runtime's plain environment. */
  env: Record<string, string>;
  /** 64 hex digits: its daemon authenticates its records with it. It reaches the daemon alone, and is kept nowhere. */
  record_key: string;
  memory_mib: number;
  cpu_millis: number;
}

/**
 * What became of a change.
 * - `done`: also where it was so before
 * - `lost`: the sandbox's daemon has died, or the runtime does not know the sandbox: nothing but `end` and `remove`
 *   can be done with it
 */
export type RuntimeChange = 'done' | 'lost';

/** The runtime's name for a sandbox, never empty; or why there is none. */
export type RuntimeFork = { outcome: 'created'; pod_name: string } | { outcome: 'lost' };

/** How a sandbox ended. */
export interface RuntimeEnd {
  /** `killed`: its `sandbox.killed` was committed by this or an earlier call; `lost`: its daemon had died before. */
  outcome: 'killed' | 'lost' | 'absent';
}

/**
 * - `absent`: there is nothing of it, or only what a `create` or `fork` that did not finish has left
 * - `lost`: its daemon has died; it is never started again by itself
 * - `untracked`: this runtime keeps nothing, the manager's record is all there is (`--runtime none`)
 */
export type RuntimeState = 'running' | 'paused' | 'lost' | 'absent' | 'untracked';

/**
 * How sandboxes really run. Every verb may be called by any manager process on the machine, also by one that did not
 * create the sandbox: all state is with the sandbox. One sandbox's verbs are called one after another; the manager's
 * transitions see to that. What goes wrong in an unforeseen way is thrown as the catalogue's error
 * (`outbox_unavailable`, `internal_error`), with nothing of a secret in it.
 *
 * How the manager uses it:
 * - claim: `create`; where it throws, nothing is left of the sandbox (`invalid_request` names the field, such as
 *   `webhook.watch_dir`)
 * - deletion, after its commit: `end`, then every page of `handOver` into the outbox, then `remove`. Each may be
 *   called again from the beginning by whoever finishes the deletion; `handOver` gives the same records until `remove`
 * - recovery: `list` and `inspect`; a claim without a committed record is undone by `end` and `remove`
 */
export interface Runtime {
  /** Finds out whether sandboxes can run here; throws StartError with the line that a user is to see. */
  start(): Promise<void>;

  /** Makes a sandbox; resolves when its daemon is ready. The same spec again gives the sandbox that is there. */
  create(spec: RuntimeSpec): Promise<{ pod_name: string }>;

  /** Freezes it; resolves once `sandbox.paused` is committed. */
  pause(sandbox_id: string, reason: string | null): Promise<RuntimeChange>;

  /** Lets it go on; resolves once `sandbox.resumed` is committed. */
  resume(sandbox_id: string, reason: string | null): Promise<RuntimeChange>;

  /**
   * Copies a sandbox; the child is left paused, with the identity and webhook of `child`. The source stands still
   * meanwhile, without an event, and is afterwards as it was; it may be paused. `lost` is the source's.
   */
  fork(source_id: string, child: RuntimeSpec): Promise<RuntimeFork>;

  /** `env` takes the place of what later processes got; `memory_mib` holds at once. Also while it is paused. */
  change(
    sandbox_id: string,
    change: { env?: Record<string, string>; memory_mib?: number },
  ): Promise<RuntimeChange>;

  /**
   * Ends every process and then the daemon, with `sandbox.killed` (reason `api`) committed and without a flush of its
   * deliveries. Takes up to about 15 s where processes do not heed SIGTERM. Nothing of it runs afterwards, also where
   * the daemon did not answer or had died.
   */
  end(sandbox_id: string): Promise<RuntimeEnd>;

  /**
   * Reads what the daemon of a sandbox that `end` has ended had not delivered, some hundred records at a time, and of
   * that only what the daemon has made. Throws what may pass: then all of it is to be read again, later.
   */
  handOver(sandbox_id: string, trust: HandOverTrust): AsyncIterable<UndeliveredPage>;

  /** Removes everything of it from the disk, and ends what may still run. Idempotent. */
  remove(sandbox_id: string): Promise<void>;

  /** Asks the sandbox itself, and waits for its answer: for what was left in the middle, not for looks at many. */
  inspect(sandbox_id: string): Promise<RuntimeState>;

  /**
   * Whether what runs the sandbox is alive, by the word of the kernel alone: a sandbox that answers slowly, wrongly or
   * not at all delays nobody.
   */
  isAlive(sandbox_id: string): Promise<boolean>;

  /**
   * The Unix socket that serves the daemon's whole API without a token, for the routes that are passed through; null
   * where there is none. A connection to it fails where the daemon has died.
   */
  controlSocket(sandbox_id: string): string | null;

  /** The ids of all sandboxes of which something is on the disk, finished or not. */
  list(): Promise<string[]>;
}
