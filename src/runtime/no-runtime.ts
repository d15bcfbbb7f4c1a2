import type { Socket } from 'node:net';
import type { Metric } from '../base/metrics.ts';
import { PAUSED_MEMORY_MIB } from '../contract/defaults.ts';
import { ApiError } from '../contract/errors.ts';
import type { Carrier } from './egress/carrier.ts';
import { flowMetrics } from './networks/flow-metrics.ts';
import type { SandboxNetworks } from './networks/sandbox-networks.ts';
import { UnmeteredNetworks, unmetered } from './networks/unmetered-networks.ts';
import { PoolMetrics } from './pool-metrics.ts';
import type {
  KeptSandbox,
  LifecyclePage,
  Liveness,
  MadeSandbox,
  RecordTrust,
  Runtime,
  RuntimeChange,
  RuntimeEnd,
  RuntimeFork,
  RuntimeSpec,
  RuntimeState,
  SandboxPlace,
  UndeliveredPage,
} from './runtime.ts';

/**
 * `--runtime none`: sandboxes are rows of the database only, and every change succeeds. It keeps no state, so every
 * replica and every restart agrees with the database. Source: contract section 7, `--runtime`.
 */
export class NoRuntime implements Runtime {
  /** See `Runtime`. */
  readonly cluster_id = 'local';
  /** See `Runtime`. */
  readonly summary = 'only records of sandboxes; nothing runs';
  readonly runs_sandboxes = false;
  readonly node = null;
  readonly place: SandboxPlace | null = null;
  /** There are none. */
  readonly networks: SandboxNetworks = new UnmeteredNetworks(unmetered('no sandboxes run here'));

  /** Always possible. */
  async start(): Promise<void> {}

  /** There is nothing to carry. */
  carryBy(_carrier: Carrier): void {}

  /** Nothing to take over. */
  async takeOver(): Promise<void> {}

  /** Nothing to stop. */
  async stop(): Promise<void> {}

  /** Always empty: nothing runs. */
  limitations(): string[] {
    return [];
  }

  /** All zero. */
  metrics(): Metric[] {
    return [...new PoolMetrics().metrics(), ...flowMetrics()];
  }

  /** Always empty: there are no templates. */
  resourcesOf(_template_id: string) {
    return {};
  }

  /** Succeeds with the pod name `none-<sandbox_id>`. */
  async create({ sandbox_id }: RuntimeSpec): Promise<MadeSandbox> {
    return { pod_name: podName(sandbox_id), persistence: null };
  }

  /** Always done. */
  async pause(...[, , , memory = true]: Partial<Parameters<Runtime['pause']>>): Promise<RuntimeChange> {
    return memory ? 'done' : 'emptied';
  }

  /** Always done. */
  async resume(...[, , , memory = true]: Partial<Parameters<Runtime['resume']>>): Promise<RuntimeChange> {
    return memory ? 'done' : 'emptied';
  }

  /** As much as a daemon would. */
  heldMib(_sandbox_id: string): number | null {
    return PAUSED_MEMORY_MIB;
  }

  /** Always `created`. */
  async fork(_source_id: string, child: RuntimeSpec): Promise<RuntimeFork> {
    return { outcome: 'created', pod_name: podName(child.sandbox_id), persistence: null };
  }

  /** Always `done`. */
  async change(): Promise<RuntimeChange> {
    return 'done';
  }

  /** There are no events. */
  async lifecycle(_sandbox_id: string, _trust: RecordTrust, _after: number): Promise<LifecyclePage | null> {
    return { events: [], more: false, refused: 0 };
  }

  /** Always `killed`. */
  async end(): Promise<RuntimeEnd> {
    return { outcome: 'killed' };
  }

  /** There are no records. */
  async *handOver(): AsyncIterable<UndeliveredPage> {}

  /** Nothing to remove. */
  async remove(): Promise<void> {}

  /** There is nothing to keep. */
  async fenceOff(_sandbox_id: string, _number: number): Promise<void> {}

  /** Always `untracked`. */
  async inspect(): Promise<RuntimeState> {
    return 'untracked';
  }

  /** Always `alive`. */
  async liveness(_sandbox_id: string): Promise<Liveness> {
    return 'alive';
  }

  /** Throws `conflict`: there is no daemon. */
  async connect(_sandbox_id: string): Promise<Socket> {
    throw new ApiError('conflict', 'Sandboxes of --runtime none have no daemon to pass this request to.');
  }

  /** Always false. */
  hasOwnPorts(_sandbox_id: string): boolean {
    return false;
  }

  /** Always empty. */
  async list(): Promise<string[]> {
    return [];
  }

  /** Always null. */
  async kept(_sandbox_id: string): Promise<KeptSandbox | null> {
    return null;
  }

  /** Nothing to close. */
  async closeOff(_sandbox_id: string): Promise<void> {}
}

function podName(sandbox_id: string): string {
  return `none-${sandbox_id}`;
}
