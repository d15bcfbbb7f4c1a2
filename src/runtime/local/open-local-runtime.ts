import { resolve } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { NetworkOption } from '../../contract/network.ts';
import { type Cidr, cidrText } from '../../webhook/address.ts';
import { SandboxDisks } from '../disk/sandbox-disks.ts';
import { ResourceGroups } from '../limits/resource-groups.ts';
import { ChosenNetworks } from '../networks/chosen-networks.ts';
import { Bubblewrap } from '../walls/bubblewrap.ts';
import { NoIsolation } from '../walls/no-isolation.ts';
import { LocalRuntime } from './local-runtime.ts';
import { builtProgram, ProgramCopies } from './program.ts';

/** Options of sandboxes on this machine. */
export interface LocalRuntimeOptions {
  data_dir: string;
  is_isolated: boolean;
  network: NetworkOption;
  /** Non-public addresses that webhooks may reach. */
  allow_webhook_cidr: Cidr[];
  /** Addresses that sandboxes may reach although they are the node's, another sandbox's, or link-local. */
  allow_sandbox_cidr: Cidr[];
  quota_fail_open: boolean;
  /** `--node-memory` in MiB; null: the machine's. */
  node: { memory_mib: number | null };
}

/** The runtime of sandboxes on this machine, not started. Throws StartError if the built daemon is missing. */
export function openLocalRuntime(options: LocalRuntimeOptions, clock: Clock, log: Log): LocalRuntime {
  const data_dir = resolve(options.data_dir);
  const programs = new ProgramCopies(data_dir, builtProgram());
  return new LocalRuntime({
    data_dir,
    isolation: options.is_isolated ? new Bubblewrap(programs) : new NoIsolation(programs),
    programs,
    groups: ResourceGroups.open({ node_memory_mib: options.node.memory_mib }),
    disks: new SandboxDisks(options.is_isolated ? null : 'sandboxes are not isolated'),
    networks: new ChosenNetworks({
      network: options.network,
      allowed_cidrs: options.allow_sandbox_cidr.map(cidrText),
      is_fail_open: options.quota_fail_open,
      clock,
      log,
    }),
    webhook_cidrs: options.allow_webhook_cidr.map(cidrText),
    clock,
    log,
  });
}
