import { existsSync, readFileSync } from 'node:fs';
import { runTool } from '../base/run-tool.ts';
import { flowBounds } from './flows/flow-bounds.ts';
import { linkOf } from './namespace/addresses.ts';
import { namesBeginning, namespacePath } from './namespace/namespace-file.ts';
import { nodeGroup } from './namespace/node-group.ts';
import { nodeRulesText } from './namespace/node-rules.ts';
import { queuePrograms, queueText, sandboxScript } from './namespace/texts.ts';

const CAPABILITIES = { CAP_NET_ADMIN: 12n, CAP_SYS_ADMIN: 21n };
const PROGRAMS = {
  ip: 'iproute2',
  nft: 'nftables',
  'iptables-restore': 'iptables',
  'ip6tables-restore': 'iptables',
};

const PREFIX = 'sbx-probe-';

let probes = 0;

/**
 * What this machine or process lacks for metering, in a few words; null if nothing. Tries everything once, in a
 * namespace of its own. Source: contract section 7, "Network".
 */
export async function networkProblem(): Promise<string | null> {
  for (const [name, bit] of Object.entries(CAPABILITIES)) {
    if (((effectiveCapabilities() >> bit) & 1n) === 0n)
      return `it needs root, or CAP_NET_ADMIN and CAP_SYS_ADMIN (${name} is missing; a link in user space is not supported)`;
  }
  for (const [program, debian_package] of Object.entries(PROGRAMS)) {
    const is_there = await runTool([program, '-V']).then(
      () => true,
      () => false,
    );
    if (!is_there) return `${program} is not installed (Debian package ${debian_package})`;
  }
  await removeLeftProbes();
  const name = `${PREFIX}${process.pid}-${++probes}`;
  try {
    await runTool(['ip', 'netns', 'add', name]);
  } catch (error) {
    return `network namespaces cannot be created: ${reasonOf(error)}`;
  }
  try {
    return (await partsProblem(name)) ?? (await queueProblem(namespacePath(name)));
  } finally {
    await runTool(['ip', 'netns', 'delete', name]);
  }
}

/** Tries links and rules, as a sandbox and the node get them. */
async function partsProblem(name: string): Promise<string | null> {
  const link = linkOf(0);
  const flows = { bounds: flowBounds(2 ** 16), has_timeouts: false };
  const teams = new Map([[link.interface, 1]]);
  const rules = { group: nodeGroup(name), links: [link], teams, flows, allowed_cidrs: ['192.0.2.0/24'] };
  const resolution = { name_servers: ['192.0.2.1'], local_name_server: '127.0.0.1' };
  const is_metered = { egress: false, ingress: false };
  const attempts: [what: string, command: string[], stdin: string][] = [
    ['links (veth)', ['ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', link.interface], ''],
    ['rules of the packet filter', ['nft', '-f', '-'], nodeRulesText({ ...rules, ...resolution })],
    ['counters, addresses or routes', ['sh'], sandboxScript({ link, is_metered })],
  ];
  for (const [what, command, stdin] of attempts) {
    try {
      await runTool(['nsenter', `--net=${namespacePath(name)}`, ...command], { stdin });
    } catch (error) {
      return `this kernel refuses ${what}: ${reasonOf(error)}`;
    }
  }
  return null;
}

async function queueProblem(path: string): Promise<string | null> {
  try {
    const { PacketQueue, SANDBOX_QUEUES } = await import('./queue/packet-queue.ts');
    PacketQueue.open(path, SANDBOX_QUEUES).close();
  } catch (error) {
    return `packet queues cannot be opened: ${(error as Error).message}`;
  }
  const text = queueText({ egress: true, ingress: true });
  for (const program of queuePrograms()) {
    try {
      await runTool(['nsenter', `--net=${path}`, program], { stdin: text });
    } catch {
      return `this kernel has no NFQUEUE (refused by ${program})`;
    }
  }
  return null;
}

/** Removes the probes of processes that were killed while they tried. */
async function removeLeftProbes(): Promise<void> {
  for (const name of namesBeginning(PREFIX)) {
    const pid = name.slice(PREFIX.length).split('-')[0];
    if (pid && !existsSync(`/proc/${pid}`)) await runTool(['ip', 'netns', 'delete', name]).catch(() => {});
  }
}

/** The first line is enough for a person. */
function reasonOf(error: unknown): string {
  return (error as Error).message.split('\n')[0] ?? '';
}

function effectiveCapabilities(): bigint {
  const mask = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
  return BigInt(`0x${mask ?? '0'}`);
}
