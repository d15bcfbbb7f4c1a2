/** The modes that `--network` can be given. Contract section 7, "Network". */
export const NETWORK_OPTIONS = ['auto', 'metered', 'none', 'host-unmetered'] as const;

/** One of `NETWORK_OPTIONS`. */
export type NetworkOption = (typeof NETWORK_OPTIONS)[number];

/**
 * How the network of this node's sandboxes works, as in `/readyz`.
 * - `metered`: each sandbox has a network of its own, counted and limited by the byte
 * - `none`: each sandbox has only a loopback interface of its own
 * - `host-unmetered`: the network of the host; nothing is counted or limited
 */
export interface NetworkState {
  mode: Exclude<NetworkOption, 'auto'>;
  /** Why it is not metered although it could be asked for, or why metered sandboxes have no network now; else null. */
  reason: string | null;
  /** What keeps a sandbox with `block-all` from the network; null where such claims are refused. */
  block_all: BlockAllBy | null;
}

/**
 * What `block-all` is enforced by.
 * - `network_namespace`: the sandbox has a network of its own, of the loopback interface alone
 * - `network_policy`: policies of the cluster, which hold only if its network plugin enforces them
 */
export const BLOCK_ALL_BY = ['network_namespace', 'network_policy'] as const;

/** One of `BLOCK_ALL_BY`. */
export type BlockAllBy = (typeof BLOCK_ALL_BY)[number];

/** `config.network.mode`: `block-all` leaves only the loopback interface. */
export const SANDBOX_NETWORK_MODES = ['allow-all', 'block-all'] as const;

/** One of `SANDBOX_NETWORK_MODES`. */
export type SandboxNetworkMode = (typeof SANDBOX_NETWORK_MODES)[number];

/** What there is to know about `block-all` that is enforced by policies of a cluster. */
export const BY_NETWORK_POLICY = 'by network policies, if the network plugin of the cluster enforces them';

/** The longest packet. A smaller burst could never let one pass, so it is raised to this. */
export const BURST_MIN_BYTES = 65_536;
