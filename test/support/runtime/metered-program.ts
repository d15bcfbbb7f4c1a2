import { createInterface } from 'node:readline';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { SandboxDisks } from '../../../src/runtime/disk/sandbox-disks.ts';
import { ResourceGroups } from '../../../src/runtime/limits/resource-groups.ts';
import { LocalRuntime } from '../../../src/runtime/local/local-runtime.ts';
import { builtProgram, ProgramCopies } from '../../../src/runtime/local/program.ts';
import { MeteredNetworks } from '../../../src/runtime/networks/metered-networks.ts';
import { Bubblewrap } from '../../../src/runtime/walls/bubblewrap.ts';

/**
 * A manager's part in the networks of sandboxes, to be killed. Its argument is a `ProgramSettings` as JSON, each line of
 * its input a `ProgramOrder`; it answers each with a line of JSON, and writes one when it is open.
 */
const { data_dir, program_dir, node_namespace, group_parent } = JSON.parse(
  process.argv[2] ?? '{}',
) as ProgramSettings;

/** Where the program works. */
export interface ProgramSettings {
  data_dir: string;
  program_dir: string;
  node_namespace: string;
  group_parent: string;
}

/** What it is told to do. */
export type ProgramOrder =
  | { verb: 'create'; spec: Parameters<LocalRuntime['create']>[0] }
  | { verb: 'usage'; sandbox_id: string }
  | { verb: 'refresh' | 'close' };

const programs = new ProgramCopies(program_dir, builtProgram());
const [clock, log] = [systemClock, createLog('silent')];
const networks = new MeteredNetworks({
  ...{ allowed_cidrs: [], is_fail_open: false, clock, log },
  ...{ node_namespace, resolver_files: [] },
});
const runtime = new LocalRuntime({
  ...{ data_dir, programs, networks, webhook_cidrs: [], clock, log },
  isolation: new Bubblewrap(programs),
  groups: ResourceGroups.open({ parent: group_parent }),
  disks: new SandboxDisks(null),
});
await runtime.start();
await runtime.takeOver();
await networks.open({
  authority: { reserve: async () => ({ outcome: 'reserved', delay_ms: 0 }), giveBack: () => {} },
  isRecorded: async () => true,
  limitsOf: async () => ({ egress: null, ingress: null }),
});

const tell = (told: unknown) => process.stdout.write(`${JSON.stringify(told ?? null)}\n`);
tell('open');
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as ProgramOrder;
  if (order.verb === 'create') tell(await runtime.create(order.spec));
  else if (order.verb === 'usage') tell(await networks.usage(order.sandbox_id));
  else tell(await networks[order.verb]());
}
