import type { NetworkState } from '../../contract/network.ts';
import type { NetworkUsage } from '../../contract/sandboxes.ts';
import type { TeamLimits } from '../../network/attachment.ts';
import type { ByteAuthority } from '../../network/authority.ts';

/** What the networks of sandboxes need of the manager. */
export interface NetworkSources {
  authority: ByteAuthority;
  /** A team's byte quotas now; at most about 4 s old. */
  limitsOf(team_id: string): Promise<TeamLimits>;
  /** Whether a sandbox is recorded; the network of one that is not is left closed. */
  isRecorded(sandbox_id: string): Promise<boolean>;
}

/**
 * The networks of the sandboxes on this machine. A sandbox gets its network with `Runtime.create` and `fork`, and loses it
 * with `remove`. Source: contract section 7, "Network".
 */
export interface SandboxNetworks {
  /** The mode, known after `Runtime.start`, and whether metered sandboxes have a network at present. */
  state(): NetworkState;

  /**
   * Starts metering and takes over the networks that earlier managers left. Call it once, after `Runtime.start` and before
   * the first claim. Rejects if the network runtime cannot be started.
   */
  open(sources: NetworkSources): Promise<void>;

  /**
   * Applies changed quotas of teams, also to open connections; takes over networks whose manager has died; removes those
   * of sandboxes that are gone. Call it every second.
   */
  refresh(): Promise<void>;

  /**
   * What has passed since the sandbox was made, by the kernel's count; it never decreases. Cheap while nothing passes.
   * Null if nothing is counted, or the sandbox is not on this machine.
   */
  usage(sandbox_id: string): Promise<NetworkUsage | null>;

  /** Cuts a sandbox off and returns its final usage, which stays the same until `remove`; null as for `usage`. Idempotent. */
  cut(sandbox_id: string): Promise<NetworkUsage | null>;

  /** Lets nothing pass of a sandbox that is not recorded, until it is; where the network is metered. Idempotent. */
  closeOff(sandbox_id: string): Promise<void>;

  /** Stops metering. Metered sandboxes have no network until the next `open`; their connections survive. Idempotent. */
  close(): Promise<void>;
}
