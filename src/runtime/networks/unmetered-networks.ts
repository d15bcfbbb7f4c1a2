import type { NetworkState } from '../../contract/network.ts';
import type { SandboxNetworks } from './sandbox-networks.ts';

/** Sandboxes without a network of their own that could be counted. */
export class UnmeteredNetworks implements SandboxNetworks {
  readonly #state: NetworkState;

  /** `state`: what `/readyz` shows. */
  constructor(state: NetworkState) {
    this.#state = state;
  }

  /** Always the same. */
  state(): NetworkState {
    return this.#state;
  }

  /** Nothing to start. */
  async open(): Promise<void> {}

  /** Nothing to refresh. */
  async refresh(): Promise<void> {}

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
