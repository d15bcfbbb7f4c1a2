import type { NetworkState } from '../../contract/network.ts';
import type { SandboxFiles } from '../local/sandbox-files.ts';
import type { RuntimeSpec } from '../runtime.ts';
import { HOST_NETWORK, type LocalNetworks, type SandboxNetwork } from './local-networks.ts';

/** The state of the host's network, which is neither counted nor limited. */
export function unmetered(reason: string | null): NetworkState {
  return { mode: 'host-unmetered', reason, block_all: null };
}

/** Sandboxes without a network of their own that could be counted: they have the host's. */
export class UnmeteredNetworks implements LocalNetworks {
  readonly #state: NetworkState;

  /** `state`: what `/readyz` shows. */
  constructor(state: NetworkState) {
    this.#state = state;
  }

  /** Nothing to check. */
  async start(): Promise<void> {}

  /** Always empty. */
  limitations(): string[] {
    return [];
  }

  /** Always null: nothing is bounded. */
  async flowTable(): Promise<null> {
    return null;
  }

  /** Always the same. */
  state(): NetworkState {
    return this.#state;
  }

  /** Nothing to start. */
  async open(): Promise<void> {}

  /** Nothing to refresh. */
  async refresh(): Promise<void> {}

  /** The host's network. */
  async attach(_files: SandboxFiles, _spec: RuntimeSpec): Promise<SandboxNetwork> {
    return HOST_NETWORK;
  }

  /** Nothing can be closed. */
  async closeOff(): Promise<void> {}

  /** Nothing to remove. */
  async detach(): Promise<void> {}

  /** Always null: nothing is counted. */
  async usage(): Promise<null> {
    return null;
  }

  /** Always null: nothing is counted. */
  async cut(): Promise<null> {
    return null;
  }

  /** Nothing to stop. */
  async close(): Promise<void> {}
}
