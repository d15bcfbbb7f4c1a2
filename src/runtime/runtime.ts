import type { Socket } from 'node:net';
import type { Metric } from '../base/metrics.ts';
import type { EventType } from '../contract/events.ts';
import type { SandboxNetworkMode } from '../contract/network.ts';
import type { SandboxBandwidth } from '../contract/sandboxes.ts';
import type { SandboxTemplate } from '../contract/templates.ts';
import type { Persistence, WebhookRetry } from '../contract/words.ts';
import type { Trust } from '../outbox/sqlite/undelivered/belief.ts';
import type {
  HandOverSource,
  LifecycleEvent,
  UndeliveredPage,
  UndeliveredRecord,
} from '../outbox/sqlite/undelivered/undelivered-record.ts';
import type { Carrier } from './egress/carrier.ts';
import type { SandboxNetworks } from './networks/sandbox-networks.ts';

export type { LifecycleEvent, UndeliveredPage, UndeliveredRecord };

/** Where a sandbox's events are delivered. `watch_dir` is an absolute path inside the sandbox, or null. */
export interface RuntimeWebhook {
  url: string;
  /** Empty: nothing is signed. It is sent to the daemon over its control socket and stored nowhere else. */
  secret: string;
  watch_dir: string | null;
  /** Globs. */
  watch_ignore: string[];
  /** The kinds that are sent; null: all of them. */
  events: EventType[] | null;
  retry: WebhookRetry;
}

/** The keys and names by which a sandbox's records are authenticated. */
export type RecordTrust = Omit<Trust, 'sandbox_id'>;

/** The same for a handover, and the sequence after which the events of the sandbox's own life are read. */
export type HandOverTrust = Omit<HandOverSource, 'sandbox_id' | 'state_dir'>;

/** Events of a sandbox's own life; `more` where others follow. `refused`: how many records its daemon did not make. */
export interface LifecyclePage {
  events: LifecycleEvent[];
  more: boolean;
  refused: number;
}

/** The specification of a sandbox. Source: contract section 7, POST `/api/v1/sandboxes`. */
export interface RuntimeSpec {
  /** 1 to 64 of `A-Z a-z 0-9 _ - .`, not beginning with a dot: it names the sandbox's directory. */
  sandbox_id: string;
  team_id: string;
  /** What it is made of, where the runtime has templates; elsewhere a label. */
  template_id: string;
  webhook: RuntimeWebhook | null;
  /** Added to the runtime's plain environment. */
  env: Record<string, string>;
  /** 64 hex digits: its daemon authenticates its records with it. It is sent to the daemon alone, and stored nowhere. */
  record_key: string;
  memory_mib: number;
  cpu_millis: number;
  /** The bound on its disk, in MiB. */
  disk_mib: number;
  network_mode: SandboxNetworkMode;
  bandwidth: SandboxBandwidth;
  /** Kept with the sandbox as it is: sealed, for the manager alone, which makes a lost record of it again. */
  note: string;
}

/** What a runtime has recorded of a sandbox that is here. */
export interface KeptSandbox {
  team_id: string;
  /** `incomplete`: the remains of an interrupted `create` or `fork`; `ended`: nothing of it runs. */
  state: 'running' | 'paused' | 'ended' | 'incomplete';
  memory_mib: number;
  cpu_millis: number;
  /** As in `Runtime.heldMib`. */
  held_mib: number | null;
  /** Null where its disk is not bounded. */
  disk_mib: number | null;
  watch_dir: string | null;
  /** Null where it was made without. */
  note: string | null;
  made: MadeSandbox;
}

/**
 * Whether a sandbox lives.
 * - `lost`: there is a proof: its daemon, its keeper or its Pod has ended
 * - `unknown`: nothing of it is here, neither a directory nor an object of the cluster: it may run elsewhere
 */
export type Liveness = 'alive' | 'lost' | 'unknown';

/**
 * The result of a change.
 * - `done`: also if nothing had to be changed
 * - `emptied`: the same of a pause or resume, and the processes of before the pause are not kept
 * - `lost`: the sandbox's daemon has died; only `end` and `remove` are left
 * - `unknown`: as in `Liveness`
 */
export type RuntimeChange = 'done' | 'emptied' | 'lost' | 'unknown';

/** Whether a change was not made, since there is no sandbox that it could be made to. */
export function isGone(change: RuntimeChange): change is 'lost' | 'unknown' {
  return change === 'lost' || change === 'unknown';
}

/** A sandbox that was made. */
export interface MadeSandbox {
  /** The runtime's name for it, never empty. */
  pod_name: string;
  /** Null where it has no root of its own. */
  persistence: Persistence | null;
}

/** The result of a fork: the child, or what the source is. */
export type RuntimeFork = ({ outcome: 'created' } & MadeSandbox) | { outcome: 'lost' | 'unknown' };

/** The right of an operation to change a sandbox, until another replica takes the operation over. */
export interface Fence {
  /** Higher than that of every earlier operation of the sandbox, and of every replica that had this one before. */
  readonly number: number;
  /** Asked before each step of a verb, by the step's name. Throws `unavailable` once the right is lost, or may be. */
  check(step: string): Promise<void>;
  /** Told where the number of another was found beside the sandbox; returns the error to throw. */
  lose(): Error;
}

/** Those of a fork's two operations. */
export interface ForkFences {
  source: Fence;
  child: Fence;
}

/** How a sandbox ended. */
export interface RuntimeEnd {
  /**
   * `killed`: its `sandbox.killed` was committed by this or an earlier call; `lost`: its daemon had died before; `absent`:
   * nothing of it is here, or only the remains of an interrupted `create` or `fork`.
   */
  outcome: 'killed' | 'lost' | 'absent';
}

/**
 * The state of a sandbox.
 * - `absent`: nothing of it exists, or only the remains of an interrupted `create` or `fork`
 * - `lost`: its daemon has died; it is not started again
 * - `untracked`: this runtime keeps no state, only the manager's row exists (`--runtime none`)
 */
export type RuntimeState = 'running' | 'paused' | 'lost' | 'absent' | 'untracked';

/** The resources of a machine, the limits for its sandboxes if no option sets lower ones. Source: contract section 7, `--node-…`. */
export interface NodeResources {
  memory_mib: number;
  cpu_millis: number;
  /** What its file system has for sandboxes: what is free, and what their disks take already. */
  disk_bytes: number;
  /** As many as its process numbers are enough for; null: it does not say how many it has. */
  sandboxes: number | null;
}

/** The machine that a manager and its sandboxes share. */
export interface SandboxNode {
  /** Call it after `Runtime.start`. */
  resources(): NodeResources;

  /** The free space of the file system that sandboxes are on, now. */
  freeDiskBytes(): number;
}

/** Where a runtime keeps its sandboxes, with an id by which the manager's database knows it again. */
export interface SandboxPlace {
  /** The option that names it, with its value. */
  readonly name: string;

  /** Its id; null where it has none yet. Throws StartError where it cannot be read. */
  id(): string | null;

  /** Its id; one that has none gets one. Throws StartError. */
  mark(): string;
}

/**
 * How sandboxes really run. Any manager process on the machine may call every method, whichever created the sandbox: all
 * state is stored with the sandbox. Calls for one sandbox must not overlap; the manager's transitions ensure that.
 * Unexpected failures are thrown as errors of the catalogue (`outbox_unavailable`, `internal_error`), without secrets.
 *
 * A verb asks its fence before each step that changes something. Without a fence it is for a sandbox that nobody has any
 * more. Between a question and its step this program may stand still for any time: whoever has lost an operation therefore
 * undoes what it may have done, and `end` and `remove` bear others that do the same at the same time.
 *
 * How the manager uses it:
 * - claim: `create`; if it throws, nothing is left of the sandbox (`invalid_request` names the field, such as
 *   `webhook.watch_dir`)
 * - deletion, after its commit: `end`, then every page of `handOver` into the outbox, then `remove`. Each may be
 *   repeated from the beginning, by any replica; `handOver` returns the same records until `remove`
 * - recovery: `list` and `inspect`; a claim without a committed record is undone by `end` and `remove`
 */
export interface Runtime {
  /** The name of the cluster that its sandboxes are in; `local` for those of one machine. */
  readonly cluster_id: string;

  /** The networks of its sandboxes. */
  readonly networks: SandboxNetworks;

  /** What its sandboxes are, a phrase for the summary of a start. */
  readonly summary: string;

  /** Whether sandboxes run at all, with a daemon that requests are passed to; otherwise only the manager's rows exist. */
  readonly runs_sandboxes: boolean;

  /** The machine whose memory, cores and disk its sandboxes take; null if that is none of the manager's business. */
  readonly node: SandboxNode | null;

  /** Where they are kept, if that is this machine's; otherwise null. */
  readonly place: SandboxPlace | null;

  /** Checks that sandboxes can run here; throws StartError with a line for the user. */
  start(): Promise<void>;

  /** Sets who carries the bytes of sandboxes' webhooks that leave through this program; called once, before they are looked at. */
  carryBy(carrier: Carrier): void;

  /** Takes over what earlier managers have left; called once, after `start`, when the place is known to be the right one. */
  takeOver(): Promise<void>;

  /** Stops what works here for sandboxes, which keep running; called once, at the end. Idempotent. */
  stop(): Promise<void>;

  /** The walls and limits that this machine does not allow, a phrase for each; known after `start`. */
  limitations(): string[];

  /** The metrics of its pools of waiting sandboxes, all zero if it has none, and of its node. Source: contract section 8. */
  metrics(): Metric[];

  /**
   * The resources of a claim that names none, by its template; empty if the runtime has no templates. Throws
   * `invalid_request` for an unknown template.
   */
  resourcesOf(template_id: string): SandboxTemplate['resources'];

  /** Creates a sandbox; resolves when its daemon is ready. Idempotent for the same spec. */
  create(spec: RuntimeSpec, fence?: Fence): Promise<MadeSandbox>;

  /**
   * Freezes it; resolves once `sandbox.paused` is committed. With `memory` false its processes are ended first, with their
   * events, and its daemon goes on delivering: what it then holds is the daemon's. A pause that fails, or is left in the
   * middle, may have ended processes all the same.
   */
  pause(sandbox_id: string, reason: string | null, fence?: Fence, memory?: boolean): Promise<RuntimeChange>;

  /**
   * Unfreezes it; resolves once `sandbox.resumed` is committed. With `memory` false what its pause has kept is ended then.
   * `emptied` also where the pause, or the fork that it comes from, has kept nothing.
   */
  resume(sandbox_id: string, reason: string | null, fence?: Fence, memory?: boolean): Promise<RuntimeChange>;

  /**
   * The memory in MiB that a paused sandbox can take until it is resumed, as its pause has found; of one that is not here
   * yet: what a copy is going to. Null: all that it leases.
   */
  heldMib(sandbox_id: string): number | null;

  /**
   * Copies a running or paused sandbox; the child is paused, with the identity and webhook of `child`. The source is held
   * quiescent meanwhile, without an event, and is afterwards as before.
   */
  fork(source_id: string, child: RuntimeSpec, fences?: ForkFences): Promise<RuntimeFork>;

  /** `env` replaces the environment of later processes; `memory_mib` applies at once. Also while it is paused. */
  change(
    sandbox_id: string,
    change: { env?: Record<string, string>; memory_mib?: number },
    fence?: Fence,
  ): Promise<RuntimeChange>;

  /**
   * The events of its own life after a sequence that its daemon has committed, oldest first, up to a hundred. Null where
   * the daemon cannot be asked now.
   */
  lifecycle(sandbox_id: string, trust: RecordTrust, after: number): Promise<LifecyclePage | null>;

  /**
   * Ends every process and then the daemon, with `sandbox.killed` (reason `api`) committed and without a flush of its
   * deliveries. Takes up to about 15 s if processes ignore SIGTERM. Nothing of it runs afterwards, even if the daemon did
   * not answer or had died.
   */
  end(sandbox_id: string, fence?: Fence): Promise<RuntimeEnd>;

  /**
   * Reads the records that the daemon had not delivered, after `end`, a few hundred at a time, and before them the events
   * of the sandbox's own life; only those that the daemon made. Throws on failures that may pass: read everything again later.
   */
  handOver(sandbox_id: string, trust: HandOverTrust, fence?: Fence): AsyncIterable<UndeliveredPage>;

  /** Kills what may still run, and removes the sandbox from the disk. Idempotent. */
  remove(sandbox_id: string, fence?: Fence): Promise<void>;

  /**
   * Keeps operations whose fences have lower numbers out of a sandbox from now on, whatever their replicas' clocks say; of
   * one that does not exist there is nothing to keep. For whoever has taken an operation over, before all else.
   */
  fenceOff(sandbox_id: string, number: number): Promise<void>;

  /** Asks the sandbox's daemon, which may take seconds: for recovery, not for watching many sandboxes. */
  inspect(sandbox_id: string): Promise<RuntimeState>;

  /**
   * Whether the sandbox's daemon is alive, according to the kernel: a sandbox that answers slowly or not at all delays
   * nothing.
   */
  liveness(sandbox_id: string): Promise<Liveness>;

  /**
   * A new connection to the daemon's API, which asks for no token on it, for the passed-through routes. The end of one
   * direction is not the end of the other. Rejects with `conflict` where there are no daemons, and with the system's
   * error if the daemon has died.
   */
  connect(sandbox_id: string): Promise<Socket>;

  /** Whether the sandbox's TCP ports are its own; otherwise they are the machine's, and nobody can tell whose. */
  hasOwnPorts(sandbox_id: string): boolean;

  /** The ids of all sandboxes on the disk, complete or not. */
  list(): Promise<string[]>;

  /** What is recorded with a sandbox; null if nothing of it is here. Also before `start`, as are `list` and `connect`. */
  kept(sandbox_id: string): Promise<KeptSandbox | null>;

  /**
   * Closes the ways of its webhooks and, where that is metered, of its network, until it is looked at again (`liveness`). For
   * one that nobody has recorded. Idempotent.
   */
  closeOff(sandbox_id: string): Promise<void>;
}
