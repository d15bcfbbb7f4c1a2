import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { StartError } from '../../contract/errors.ts';
import type { NetworkOption, NetworkState } from '../../contract/network.ts';
import type { NetworkUsage } from '../../contract/sandboxes.ts';
import type { FlowTable } from '../../network/network-runtime.ts';
import { networkProblem } from '../../network/problem.ts';
import type { SandboxFiles } from '../local/sandbox-files.ts';
import type { RuntimeSpec } from '../runtime.ts';
import type { LocalNetworks, SandboxNetwork } from './local-networks.ts';
import { LoopbackNetworks } from './loopback-networks.ts';
import { MeteredNetworks, removeNamespace } from './metered-networks.ts';
import type { NetworkSources } from './sandbox-networks.ts';
import { UnmeteredNetworks, unmetered } from './unmetered-networks.ts';

/** The options of `ChosenNetworks`. */
export interface ChosenNetworkOptions {
  /** `--network`. */
  network: NetworkOption;
  /** `--allow-sandbox-cidr`. */
  allowed_cidrs: readonly string[];
  /** `--quota-fail-open`. */
  is_fail_open: boolean;
  clock: Clock;
  log: Log;
}

/** The networks that `--network` names, chosen at the start. Source: contract section 7, "Network". */
export class ChosenNetworks implements LocalNetworks {
  readonly #options: ChosenNetworkOptions;
  #chosen: LocalNetworks = new UnmeteredNetworks(unmetered('not started'));
  #data_dir = '';

  constructor(options: ChosenNetworkOptions) {
    this.#options = options;
  }

  /** Throws StartError, which names what is missing, if `metered` is asked for and cannot be. */
  async start(data_dir: string): Promise<void> {
    this.#data_dir = data_dir;
    this.#chosen = await this.#choose();
    await this.#chosen.start(data_dir);
  }

  async #choose(): Promise<LocalNetworks> {
    const { network, log } = this.#options;
    if (network === 'none') return new LoopbackNetworks();
    if (network === 'host-unmetered') return new UnmeteredNetworks(unmetered(null));
    const problem = await networkProblem();
    if (problem === null) return new MeteredNetworks(this.#options);
    if (network === 'metered') throw new StartError(`--network metered: ${problem}`);
    log.warn(
      { reason: problem },
      "sandboxes share this machine's network, which is neither counted nor limited (--network host-unmetered)",
    );
    return new UnmeteredNetworks(unmetered(problem));
  }

  /** Of what was chosen. */
  limitations(): string[] {
    return this.#chosen.limitations();
  }

  /** Of what was chosen. */
  state(): NetworkState {
    return this.#chosen.state();
  }

  /** See `LocalNetworks`. */
  flowTable(): Promise<FlowTable | null> {
    return this.#chosen.flowTable();
  }

  /** See `SandboxNetworks`. */
  open(sources: NetworkSources): Promise<void> {
    return this.#chosen.open(sources);
  }

  /** See `SandboxNetworks`. */
  refresh(): Promise<void> {
    return this.#chosen.refresh();
  }

  /** See `LocalNetworks`. */
  attach(files: SandboxFiles, spec: RuntimeSpec): Promise<SandboxNetwork> {
    return this.#chosen.attach(files, spec);
  }

  /** Also of a sandbox that was made with another `--network`. */
  async detach(files: SandboxFiles): Promise<void> {
    await this.#chosen.detach(files);
    if (this.state().mode !== 'metered') await removeNamespace(this.#data_dir, files.sandbox_id);
  }

  /** See `SandboxNetworks`. */
  usage(sandbox_id: string): Promise<NetworkUsage | null> {
    return this.#chosen.usage(sandbox_id);
  }

  /** See `SandboxNetworks`. */
  cut(sandbox_id: string): Promise<NetworkUsage | null> {
    return this.#chosen.cut(sandbox_id);
  }

  /** See `SandboxNetworks`. */
  closeOff(sandbox_id: string): Promise<void> {
    return this.#chosen.closeOff(sandbox_id);
  }

  /** See `SandboxNetworks`. */
  close(): Promise<void> {
    return this.#chosen.close();
  }
}
