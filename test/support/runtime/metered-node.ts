import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import type { TeamLimits } from '../../../src/network/attachment.ts';
import { type Link, linkOf, SANDBOXES_MAX } from '../../../src/network/namespace/addresses.ts';
import { nodeGroup } from '../../../src/network/namespace/node-group.ts';
import { MeteredNetworks } from '../../../src/runtime/networks/metered-networks.ts';
import { remainsOf } from '../network/remains.ts';
import { LendingAuthority, UNLIMITED } from '../network/test-node.ts';
import { OUTSIDE, Topology } from '../network/topology.ts';
import { runSync } from '../run-sync.ts';
import { TellingProgram } from '../running-program.ts';
import { scratchFolder } from '../scratch.ts';
import type { ProgramOrder, ProgramSettings } from './metered-program.ts';
import { groupParent, LOOPBACK, program_dir, Sandboxes, spec } from './sandboxes.ts';

const PROGRAM = join(import.meta.dirname, 'metered-program.ts');

/** The options of a `MeteredNode`. */
export interface MeteredNodeOptions {
  /** The content of the node's `resolv.conf`. */
  resolv_conf?: string;
  /** `--allow-sandbox-cidr`. */
  allowed_cidrs?: string[];
}

/** Real sandboxes with metered networks, on a node in a namespace of its own, with a world outside it. */
export class MeteredNode {
  readonly topology: Topology;
  readonly networks: MeteredNetworks;
  readonly sandboxes: Sandboxes;
  readonly authority = new LendingAuthority();
  /** Every team's limits. */
  limits: TeamLimits = UNLIMITED;

  private constructor(topology: Topology, networks: MeteredNetworks, sandboxes: Sandboxes) {
    this.topology = topology;
    this.networks = networks;
    this.sandboxes = sandboxes;
  }

  static async open(options: MeteredNodeOptions = {}): Promise<MeteredNode> {
    const topology = new Topology();
    onTestFinished(() => topology.remove());
    const data_dir = join(scratchFolder(), 'data');
    const networks = meteredNetworks(topology, options);
    const sandboxes = await Sandboxes.open('local', data_dir, LOOPBACK, {}, networks);
    const node = new MeteredNode(topology, networks, sandboxes);
    await networks.open({
      authority: node.authority,
      isRecorded: async () => true,
      limitsOf: async () => node.limits,
    });
    onTestFinished(() => networks.close());
    await topology.serve();
    return node;
  }

  /** Starts another manager of the same sandboxes, in a process of its own. */
  async startProgram({ has_own_mounts = false } = {}): Promise<MeteredProgram> {
    const { data_dir } = this.sandboxes;
    const settings = {
      data_dir,
      program_dir,
      node_namespace: this.topology.node,
      group_parent: groupParent(data_dir),
    };
    const program = new MeteredProgram(settings, has_own_mounts);
    await program.next();
    return program;
  }

  /** What is left of the networks of these sandboxes on the node. */
  remains(): string[] {
    return remainsOf(this.topology, this.sandboxes.data_dir);
  }

  /** Makes a sandbox, and returns its id. */
  async create(sandbox_id: string, given: Parameters<typeof spec>[1] = {}): Promise<string> {
    await this.sandboxes.runtime.create(spec(sandbox_id, given));
    return sandbox_id;
  }

  /** The ends of a sandbox's link. */
  async linkOf(sandbox_id: string): Promise<Link> {
    const namespace = `${nodeGroup(this.sandboxes.data_dir).prefix}${sandbox_id}`;
    const [{ address } = { address: '' }] = JSON.parse(
      runSync('ip', '-j', '-n', namespace, 'link', 'show', 'eth0'),
    ) as { address: string }[];
    const links = Array.from({ length: SANDBOXES_MAX }, (_, index) => linkOf(index));
    return links.find(({ sandbox }) => sandbox.ethernet === address) as Link;
  }

  /** What a command in a sandbox writes, both ways, and then its exit code. */
  async shell(sandbox_id: string, command: string): Promise<string> {
    const { output, exit_code } = await this.sandboxes.run(sandbox_id, command);
    return `${output.stdout}${output.stderr}`.trim() + (exit_code === 0 ? '' : ` (${exit_code})`);
  }

  /** Tries to connect from a sandbox; `connected`, or what the shell says. */
  async connect(sandbox_id: string, host: string, port: number): Promise<string> {
    const attempt = `timeout 3 bash -c 'exec 3<>/dev/tcp/${host}/${port}' && echo connected`;
    return this.shell(sandbox_id, attempt);
  }
}

/** Metered networks on the node of a topology. */
export function meteredNetworks(topology: Topology, options: MeteredNodeOptions = {}): MeteredNetworks {
  const { resolv_conf = `nameserver ${OUTSIDE.ipv4}\n`, allowed_cidrs = [] } = options;
  const resolver_file = join(scratchFolder(), 'resolv.conf');
  writeFileSync(resolver_file, resolv_conf);
  return new MeteredNetworks({
    ...{ allowed_cidrs, is_fail_open: false, clock: systemClock, log: createLog('silent') },
    ...{ node_namespace: topology.node, resolver_files: [resolver_file] },
  });
}

/** Another manager, in a process of its own; see `metered-program.ts`. */
export class MeteredProgram extends TellingProgram {
  /** `has_own_mounts`: as systemd starts a service that it protects. */
  constructor(settings: ProgramSettings, has_own_mounts: boolean) {
    const before = has_own_mounts ? ['unshare', '--mount', '--propagation', 'slave'] : [];
    super([...before, process.execPath, PROGRAM, JSON.stringify(settings)], { stdin: 'pipe' });
    onTestFinished(() => this.kill());
  }

  /** Gives an order, and returns the answer. */
  // biome-ignore lint/suspicious/noExplicitAny: what it answers is what a test looks at.
  async order(order: ProgramOrder): Promise<any> {
    this.tell(order);
    return await this.next();
  }

  /** Gives an order. */
  tell(order: ProgramOrder): void {
    this.child.stdin?.write(`${JSON.stringify(order)}\n`);
  }
}
