import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import type { RatePolicy } from '../../../src/contract/quotas.ts';
import type { TeamLimits } from '../../../src/network/attachment.ts';
import type { ByteAuthority, Reservation } from '../../../src/network/authority.ts';
import type { Direction } from '../../../src/network/directions.ts';
import type { FlowBounds } from '../../../src/network/flows/flow-bounds.ts';
import { type NodeGroup, nodeGroup } from '../../../src/network/namespace/node-group.ts';
import { NetworkRuntime } from '../../../src/network/network-runtime.ts';
import { addCounts, NO_COUNTS, networkUsageOf } from '../../../src/runtime/networks/metered-usage.ts';
import { Topology, type Traffic } from './topology.ts';

const log = createLog('silent');

/** No limit. */
export const UNLIMITED: TeamLimits = { egress: null, ingress: null };

/** A sandbox's own bandwidth, the same both ways. */
export function bandwidth(bytes_per_second: number, burst_bytes = 0) {
  return {
    egress_bandwidth_bytes_per_second: bytes_per_second,
    ingress_bandwidth_bytes_per_second: bytes_per_second,
    bandwidth_burst_bytes: burst_bytes,
  };
}

/** A team's limit, the same both ways. */
export function teamLimits(limit_value: number, burst_value = limit_value): TeamLimits {
  const policy: RatePolicy = { limit_value, interval_ms: 1_000, burst_value };
  return { egress: policy, ingress: policy };
}

/** An authority that grants everything until it is told to stop, and remembers what it lent. */
export class LendingAuthority implements ByteAuthority {
  is_reachable = true;
  readonly lent = { egress: 0, ingress: 0 };
  calls = 0;
  /** Grants no more than this in all; the rest is far away. */
  most = Number.POSITIVE_INFINITY;

  async reserve(
    _team: string,
    direction: Direction,
    _policy: RatePolicy,
    bytes: number,
  ): Promise<Reservation> {
    this.calls += 1;
    if (!this.is_reachable) return { outcome: 'unreachable' };
    this.lent[direction] += bytes;
    return { outcome: 'reserved', delay_ms: this.lent[direction] > this.most ? 10 ** 9 : 0 };
  }

  giveBack(_team: string, direction: Direction, _policy: RatePolicy, bytes: number): void {
    this.lent[direction] -= bytes;
  }
}

/** A node with its network runtime, a world outside it with a server, and sandboxes. */
export class TestNode {
  readonly topology: Topology;
  readonly group: NodeGroup;
  readonly authority = new LendingAuthority();
  readonly #shared: ByteAuthority | null;
  network: NetworkRuntime;
  readonly #sandbox_ids: string[] = [];

  readonly #is_shared: boolean;

  private constructor(authority: ByteAuthority | null, shared: Topology | null) {
    this.#shared = authority;
    this.#is_shared = shared !== null;
    this.topology = shared ?? new Topology();
    this.group = nodeGroup(this.#is_shared ? 'another' : this.topology.id);
    this.network = this.runtime();
  }

  /** `onEnd` is given what removes it again. `authority`, `topology`: another than its own. */
  static async start(
    onEnd: (remove: () => Promise<void>) => void,
    authority: ByteAuthority | null = null,
    topology: Topology | null = null,
  ): Promise<TestNode> {
    const node = new TestNode(authority, topology);
    onEnd(() => node.#remove());
    await node.network.start();
    if (topology === null) await node.topology.serve();
    return node;
  }

  /** Starts its network again, with other bounds of flows. */
  async bound(flow_bounds: Partial<FlowBounds>): Promise<void> {
    await this.network.stop();
    this.network = this.runtime([], flow_bounds);
    await this.network.start();
  }

  /** A network runtime on this node. */
  runtime(allowed_cidrs: string[] = [], flow_bounds: Partial<FlowBounds> = {}): NetworkRuntime {
    return new NetworkRuntime({
      group: this.group,
      authority: this.#shared ?? this.authority,
      is_fail_open: false,
      allowed_cidrs,
      node_namespace: this.topology.node,
      flow_bounds,
      clock: systemClock,
      log,
    });
  }

  /** Attaches a sandbox of a team. */
  async sandbox(own = bandwidth(0), team_limits = UNLIMITED, team_id = 'team'): Promise<TestSandbox> {
    const sandbox_id = `${this.topology.id}-${this.#sandbox_ids.length}`;
    this.#sandbox_ids.push(sandbox_id);
    const request = { sandbox_id, team_id, bandwidth: own, team_limits };
    await this.network.attach(request);
    return new TestSandbox(this, sandbox_id);
  }

  async #remove(): Promise<void> {
    for (const sandbox_id of this.#sandbox_ids) await this.network.detach(sandbox_id);
    await this.network.stop();
    if (!this.#is_shared) this.topology.remove();
  }
}

/** A sandbox on a test's node. */
export class TestSandbox {
  readonly #node: TestNode;
  readonly id: string;
  readonly namespace: string;

  constructor(node: TestNode, id: string) {
    this.#node = node;
    this.id = id;
    this.namespace = `${node.group.prefix}${id}`;
  }

  /** Starts the traffic program in it. */
  traffic(...args: (string | number)[]): Traffic {
    return this.#node.topology.traffic(this.namespace, ...args);
  }

  /** Tries to connect, and tells what came of it. */
  async probe(host: string, port: number): Promise<unknown> {
    return (await this.traffic('probe', host, port).next<{ outcome: string }>()).outcome;
  }

  /** Its traffic so far. */
  async usage() {
    const usage = await usageIn(this.#node.network, this.id);
    if (!usage) throw new Error('the sandbox is not attached');
    return usage;
  }
}

/** A sandbox's traffic so far, as its runtime tells it; null if it has no network there. */
export async function usageIn(network: NetworkRuntime, sandbox_id: string) {
  const passed = await network.passed(sandbox_id);
  const counts = network.meterCounts(sandbox_id);
  return passed && networkUsageOf(passed, counts ? addCounts(NO_COUNTS, counts) : NO_COUNTS);
}
