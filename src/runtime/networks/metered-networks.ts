import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { ApiError } from '../../contract/errors.ts';
import type { NetworkState } from '../../contract/network.ts';
import type { NetworkUsage } from '../../contract/sandboxes.ts';
import { Namespaces } from '../../network/namespace/namespaces.ts';
import { nodeGroup } from '../../network/namespace/node-group.ts';
import { type FlowTable, NetworkRuntime } from '../../network/network-runtime.ts';
import { identify, type ProcessIdentity } from '../local/host-process.ts';
import type { SandboxFiles } from '../local/sandbox-files.ts';
import type { RuntimeSpec } from '../runtime.ts';
import { writeEtcFiles } from './etc-files.ts';
import { type LocalNetworks, namespaceNetwork, type SandboxNetwork } from './local-networks.ts';
import { isolated } from './loopback-networks.ts';
import { addCounts, NO_COUNTS, NOTHING_PASSED, networkUsageOf } from './metered-usage.ts';
import { type NameResolution, RESOLVER_FILES, readNameServers } from './name-servers.ts';
import { NetworkRecords } from './network-record.ts';
import type { NetworkSources } from './sandbox-networks.ts';
import { TakeOver } from './take-over.ts';

/** Once in so many refreshes, what only the meter counts is saved and the node's rules are checked. */
const REFRESHES_BETWEEN_CHECKS = 10;

const METER_AWAY: NetworkState = {
  mode: 'metered',
  reason: 'the network meter is not running',
  block_all: 'network_namespace',
};

/** The options of `MeteredNetworks`. */
export interface MeteredNetworkOptions {
  /** `--allow-sandbox-cidr`. */
  allowed_cidrs: readonly string[];
  /** `--quota-fail-open`. */
  is_fail_open: boolean;
  clock: Clock;
  log: Log;
  /** The named network namespace that plays the node; default: the one of this process. */
  node_namespace?: string;
  /** Where the host's name servers are told. */
  resolver_files?: readonly string[];
}

/**
 * `--network metered`: each sandbox has a namespace of its own, and every byte is counted. What a manager must know to
 * take over is with the kernel and in the sandbox's `network.json`. Source: contract section 7, "Network".
 */
export class MeteredNetworks implements LocalNetworks {
  readonly #options: MeteredNetworkOptions;
  #opened: Opened | null = null;
  #data_dir = '';
  #self: ProcessIdentity | null = null;
  #names: NameResolution = { name_servers: [], local_name_server: null, settings: [] };
  #refreshes = 0;

  constructor(options: MeteredNetworkOptions) {
    this.#options = options;
  }

  /** Reads how names are resolved. */
  async start(data_dir: string): Promise<void> {
    this.#data_dir = data_dir;
    this.#self = await identify(process.pid);
    this.#names = this.#readNames();
  }

  /** Whether names cannot be resolved. */
  limitations(): string[] {
    const { name_servers, local_name_server } = this.#names;
    if (name_servers.length > 0 || local_name_server !== null) return [];
    return ['sandboxes cannot resolve names: /etc/resolv.conf names no server that they can reach'];
  }

  /** See `LocalNetworks`. */
  async flowTable(): Promise<FlowTable | null> {
    return (await this.#opened?.network.flowTable()) ?? null;
  }

  /** See `SandboxNetworks`. */
  state(): NetworkState {
    return this.#opened?.network.state() ?? METER_AWAY;
  }

  /** See `SandboxNetworks`. */
  async open(sources: NetworkSources): Promise<void> {
    const { allowed_cidrs, is_fail_open, clock, log } = this.#options;
    const network = new NetworkRuntime({
      group: nodeGroup(this.#data_dir),
      authority: sources.authority,
      node_namespace: this.#node_namespace,
      is_fail_open,
      allowed_cidrs,
      clock,
      log,
    });
    await network.start();
    await network.useNameServers(this.#names);
    const records = new NetworkRecords(this.#data_dir);
    const self = this.#self as ProcessIdentity;
    const take_over = new TakeOver({ network, records, sources, self, log });
    this.#opened = { network, records, sources, take_over };
    await this.refresh();
  }

  /** See `SandboxNetworks`. */
  async refresh(): Promise<void> {
    if (this.#opened === null) return;
    const { network, sources, take_over } = this.#opened;
    const limits = network.teams.map(async (team_id) => {
      await network.setTeamLimits(team_id, await sources.limitsOf(team_id));
    });
    const results = await Promise.allSettled([...limits, take_over.run()]);
    if (++this.#refreshes % REFRESHES_BETWEEN_CHECKS === 0) {
      for (const sandbox_id of network.attached) this.#save(this.#opened, sandbox_id);
      await network.repair();
    }
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** A namespace with a link; the sandbox's first packet is counted already. */
  async attach(files: SandboxFiles, spec: RuntimeSpec): Promise<SandboxNetwork> {
    const { sandbox_id, team_id, network_mode: mode, bandwidth } = spec;
    const opened = this.#opened;
    if (opened === null) throw new ApiError('internal_error', 'The network meter is not running.');
    const { network, records, sources } = opened;
    const manager = mode === 'block-all' ? null : this.#self;
    records.write(sandbox_id, { team_id, mode, bandwidth, manager, counted: NO_COUNTS });
    if (mode === 'block-all') return isolated(files, sandbox_id);
    try {
      const names = this.#readNames();
      this.#names = names;
      await network.useNameServers(names);
      const team_limits = await sources.limitsOf(team_id);
      await network.attach({ sandbox_id, team_id, bandwidth, team_limits });
      const link = names.local_name_server === null ? null : await network.linkOf(sandbox_id);
      const name_servers = link === null ? names.name_servers : [link.node.ipv4];
      const etc = join(files.directory, 'etc');
      writeEtcFiles(etc, { sandbox_id, name_servers, settings: names.settings });
      return namespaceNetwork(network.namespacePath(sandbox_id), etc);
    } catch (error) {
      this.#options.log.error({ err: error, sandbox_id }, "a sandbox's network cannot be made");
      throw new ApiError('internal_error', "The sandbox's network could not be made.");
    }
  }

  /** See `LocalNetworks`. */
  async detach({ sandbox_id }: SandboxFiles): Promise<void> {
    if (this.#opened === null) return await removeNamespace(this.#data_dir, sandbox_id, this.#node_namespace);
    await this.#opened.network.detach(sandbox_id);
    this.#opened.take_over.forget(sandbox_id);
  }

  /** See `SandboxNetworks`. */
  async usage(sandbox_id: string): Promise<NetworkUsage | null> {
    if (this.#opened === null) return null;
    const { network, records, take_over } = this.#opened;
    const record = records.read(sandbox_id);
    if (record === null) return null;
    if (record.mode === 'block-all') return networkUsageOf(NOTHING_PASSED, NO_COUNTS);
    const passed = await network.passed(sandbox_id);
    const counts = network.meterCounts(sandbox_id);
    return (
      passed &&
      networkUsageOf(passed, counts ? addCounts(take_over.countedBefore(sandbox_id), counts) : record.counted)
    );
  }

  /** See `SandboxNetworks`. */
  async cut(sandbox_id: string): Promise<NetworkUsage | null> {
    if (this.#opened === null) return null;
    await this.#opened.network.cut(sandbox_id);
    this.#save(this.#opened, sandbox_id);
    return this.usage(sandbox_id);
  }

  /** See `SandboxNetworks`. Nobody meters it then, and what nobody meters does not pass. */
  async closeOff(sandbox_id: string): Promise<void> {
    const opened = this.#opened;
    if (!opened?.network.attached.includes(sandbox_id)) return;
    this.#save(opened, sandbox_id);
    await opened.network.release(sandbox_id);
    opened.take_over.forget(sandbox_id);
    opened.records.update(sandbox_id, { manager: null });
  }

  /** See `SandboxNetworks`. Others take the sandboxes over at once. */
  async close(): Promise<void> {
    const opened = this.#opened;
    if (opened === null) return;
    this.#opened = null;
    const { network, records } = opened;
    const { attached } = network;
    for (const sandbox_id of attached) this.#save(opened, sandbox_id);
    await network.stop();
    for (const sandbox_id of attached) records.update(sandbox_id, { manager: null });
  }

  #save({ network, records, take_over }: Opened, sandbox_id: string): void {
    const counts = network.meterCounts(sandbox_id);
    const record = counts && records.read(sandbox_id);
    if (!record) return;
    const counted = addCounts(take_over.countedBefore(sandbox_id), counts);
    if (JSON.stringify(counted) !== JSON.stringify(record.counted))
      records.write(sandbox_id, { ...record, counted });
  }

  get #node_namespace(): string | null {
    return this.#options.node_namespace ?? null;
  }

  #readNames(): NameResolution {
    return readNameServers(this.#options.resolver_files ?? RESOLVER_FILES);
  }
}

interface Opened {
  network: NetworkRuntime;
  records: NetworkRecords;
  sources: NetworkSources;
  take_over: TakeOver;
}

/** Removes the network of a sandbox that an earlier manager of this data directory made. Idempotent. */
export async function removeNamespace(
  data_dir: string,
  sandbox_id: string,
  node_namespace: string | null = null,
): Promise<void> {
  await new Namespaces({ group: nodeGroup(data_dir), allowed_cidrs: [], node_namespace }).remove(sandbox_id);
}
