import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { QuotaByteAuthority } from '../../../src/manager/quotas/byte-authority.ts';
import { LocalAuthority } from '../../../src/manager/quotas/local-authority.ts';
import type { TeamLimits } from '../../../src/network/attachment.ts';
import { requestDaemon } from '../../../src/runtime/control-client.ts';
import { SandboxDisks } from '../../../src/runtime/disk/sandbox-disks.ts';
import { ResourceGroups } from '../../../src/runtime/limits/resource-groups.ts';
import { LocalRuntime } from '../../../src/runtime/local/local-runtime.ts';
import { builtProgram, ProgramCopies } from '../../../src/runtime/local/program.ts';
import type { LocalNetworks } from '../../../src/runtime/networks/local-networks.ts';
import type { RuntimeSpec } from '../../../src/runtime/runtime.ts';
import { Bubblewrap } from '../../../src/runtime/walls/bubblewrap.ts';
import { bandwidth, UNLIMITED } from '../../support/network/test-node.ts';
import type { Bench } from './bench.ts';

/** A local runtime with real sandboxes, for a benchmark. */
export class SandboxNode {
  readonly data_dir: string;
  readonly networks: LocalNetworks;
  readonly #runtime: LocalRuntime;
  #made = 0;

  private constructor(data_dir: string, networks: LocalNetworks) {
    this.data_dir = data_dir;
    this.networks = networks;
    const programs = new ProgramCopies(data_dir, builtProgram());
    this.#runtime = new LocalRuntime({
      ...{ data_dir, programs, networks, webhook_cidrs: [], clock: systemClock, log: createLog('silent') },
      isolation: new Bubblewrap(programs),
      groups: ResourceGroups.open(),
      disks: new SandboxDisks(null),
    });
  }

  static async open(bench: Bench, networks: LocalNetworks, limits: TeamLimits = UNLIMITED) {
    const node = new SandboxNode(join(bench.folder(), 'data'), networks);
    await node.#runtime.start();
    await networks.open({
      authority: new QuotaByteAuthority(new LocalAuthority(systemClock)),
      isRecorded: async () => true,
      limitsOf: async () => limits,
    });
    bench.onEnd(async () => {
      for (const sandbox_id of await node.#runtime.list()) await node.remove(sandbox_id);
      await node.#runtime.stop();
      await networks.close();
    });
    return node;
  }

  /** Makes a sandbox, and returns its id. */
  async create(own: RuntimeSpec['bandwidth'] = bandwidth(0)): Promise<string> {
    const sandbox_id = `bench-${++this.#made}`;
    await this.#runtime.create({
      ...{
        sandbox_id,
        team_id: 'team',
        template_id: 'default',
        webhook: null,
        env: {},
        record_key: 'a7'.repeat(32),
      },
      ...{
        memory_mib: 256,
        cpu_millis: 1_000,
        disk_mib: 256,
        network_mode: 'allow-all',
        bandwidth: own,
        note: '',
      },
    });
    return sandbox_id;
  }

  async remove(sandbox_id: string): Promise<void> {
    await this.#runtime.end(sandbox_id);
    await this.#runtime.remove(sandbox_id);
  }

  /** What a command in a sandbox writes. */
  async output(sandbox_id: string, shell: string): Promise<string> {
    const answer = await requestDaemon(() => this.#runtime.connect(sandbox_id), {
      ...{ method: 'POST', path: '/processes?wait_ms=60000', body: { shell }, within_ms: 70_000 },
    });
    if (answer.outcome !== 'answered' || answer.status >= 300) throw new Error(JSON.stringify(answer));
    return (answer.data as { output: { stdout: string } }).output.stdout;
  }
}
