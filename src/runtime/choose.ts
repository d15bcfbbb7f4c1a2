import { resolve } from 'node:path';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { type Cidr, cidrText } from '../webhook/address.ts';
import { SandboxDisks } from './disk/sandbox-disks.ts';
import { Bubblewrap, NoIsolation } from './isolation.ts';
import { ResourceGroups } from './limits/resource-groups.ts';
import { LocalRuntime } from './local-runtime.ts';
import { UnmeteredNetworks } from './networks/unmetered-networks.ts';
import { NoRuntime } from './no-runtime.ts';
import { builtProgram, ProgramCopies } from './program.ts';
import type { Runtime } from './runtime.ts';

/** The values of `--runtime`. Source: contract section 7. */
export type RuntimeKind = 'local' | 'local-unsafe' | 'none';

/** The options that choose and configure a runtime. */
export interface RuntimeOptions {
  runtime: RuntimeKind;
  data_dir: string;
  /** Non-public addresses that webhooks may reach. */
  allow_webhook_cidr: Cidr[];
}

/**
 * The runtime that `--runtime` names, not started; its `start` checks that it works here. Throws StartError if the built
 * daemon is missing.
 */
export function chooseRuntime(
  { runtime: kind, data_dir, allow_webhook_cidr }: RuntimeOptions,
  clock: Clock,
  log: Log,
): Runtime {
  if (kind === 'none') return new NoRuntime();
  const folder = resolve(data_dir);
  const programs = new ProgramCopies(folder, builtProgram());
  const isolation = kind === 'local' ? new Bubblewrap(programs) : new NoIsolation(programs);
  if (kind === 'local-unsafe') log.warn('local-unsafe: sandboxes are not isolated from this machine');
  return new LocalRuntime({
    data_dir: folder,
    isolation,
    programs,
    groups: ResourceGroups.open(),
    disks: new SandboxDisks(kind === 'local' ? null : 'sandboxes are not isolated'),
    networks: new UnmeteredNetworks({ mode: 'host-unmetered', reason: null }),
    webhook_cidrs: allow_webhook_cidr.map(cidrText),
    clock,
    log,
  });
}
