import type { WebhookEgress } from '../../contract/control-socket.ts';
import type { FlowTable } from '../../network/network-runtime.ts';
import type { SandboxFiles } from '../local/sandbox-files.ts';
import type { RuntimeSpec } from '../runtime.ts';
import type { SandboxNetworks } from './sandbox-networks.ts';

/** How a sandbox's daemon is started so that it has the sandbox's network. */
export interface SandboxNetwork {
  /** The beginning of the command line; it enters the sandbox's namespace. */
  enter: readonly string[];
  /** For bubblewrap. */
  bubblewrap_args: readonly string[];
  /** Whether it is a namespace of the sandbox's own. */
  is_own: boolean;
  /** The TCP port that the daemon listens on; 0: any. */
  port: number;
  /** The folder of its own files of `/etc`, see `writeEtcFiles`; null: it has the host's. */
  etc: string | null;
  /** How its webhooks leave. */
  webhook_egress: WebhookEgress;
}

/** The networks of the local runtime's sandboxes, as the runtime makes them. */
export interface LocalNetworks extends SandboxNetworks {
  /** Checks that they can be made here. `data_dir`: absolute, without links. Throws StartError. */
  start(data_dir: string): Promise<void>;

  /** What sandboxes have to do without, a phrase for each; known after `start`. */
  limitations(): string[];

  /** The connections that the node tracks; null where their network is not metered. */
  flowTable(): Promise<FlowTable | null>;

  /** Makes the network of a sandbox that does not run yet. Its directory exists. Throws `internal_error`. */
  attach(files: SandboxFiles, spec: RuntimeSpec): Promise<SandboxNetwork>;

  /** Removes the network of a sandbox that does not run any more. Idempotent. */
  detach(files: SandboxFiles): Promise<void>;
}

/** The port of the daemon in every sandbox with a network namespace of its own. Source: contract section 7. */
const OWN_PORT = 49_983;

/** The network of the host. */
export const HOST_NETWORK: SandboxNetwork = {
  enter: [],
  bubblewrap_args: [],
  is_own: false,
  port: 0,
  etc: null,
  webhook_egress: 'direct',
};

/** Webhooks are the platform's traffic: not the sandbox's to pay for, nor its network's to reach. */
const OWN_NETWORK = {
  enter: [],
  bubblewrap_args: [],
  is_own: true,
  port: OWN_PORT,
  webhook_egress: 'manager',
} as const;

/** A namespace with a loopback interface alone, which lasts as long as the sandbox runs. */
export function loopbackNetwork(etc: string): SandboxNetwork {
  return { ...OWN_NETWORK, bubblewrap_args: ['--unshare-net'], etc };
}

/** The namespace at `path`. */
export function namespaceNetwork(path: string, etc: string): SandboxNetwork {
  return { ...OWN_NETWORK, enter: ['nsenter', `--net=${path}`, '--'], etc };
}
