import { readFileSync } from 'node:fs';
import { QUEUES } from './directions.ts';
import { runProgram } from './namespace/programs.ts';
import { queueText } from './namespace/texts.ts';

const CAPABILITIES = { CAP_NET_ADMIN: 12n, CAP_SYS_ADMIN: 21n };
const PROGRAMS = {
  ip: 'iproute2',
  nft: 'nftables',
  'iptables-restore': 'iptables',
  'ip6tables-restore': 'iptables',
};

let probes = 0;

/**
 * What this machine or process lacks for metering, in a few words; null if nothing. Tries everything once, in a
 * namespace of its own. Source: contract section 7, "Network".
 */
export async function networkProblem(): Promise<string | null> {
  for (const [name, bit] of Object.entries(CAPABILITIES)) {
    if (((effectiveCapabilities() >> bit) & 1n) === 0n) return `root or ${name} is required`;
  }
  for (const [program, debian_package] of Object.entries(PROGRAMS)) {
    const is_there = await runProgram([program, '-V']).then(
      () => true,
      () => false,
    );
    if (!is_there) return `${program} is not installed (Debian package ${debian_package})`;
  }
  const name = `probe-${process.pid}-${++probes}`;
  try {
    await runProgram(['ip', 'netns', 'add', name]);
  } catch (error) {
    return `network namespaces cannot be created: ${(error as Error).message}`;
  }
  try {
    return (await queueProblem(`/run/netns/${name}`)) ?? null;
  } finally {
    await runProgram(['ip', 'netns', 'delete', name]);
  }
}

async function queueProblem(path: string): Promise<string | null> {
  try {
    const { PacketQueue } = await import('./queue/packet-queue.ts');
    PacketQueue.open(path, Object.values(QUEUES)).close();
  } catch (error) {
    return `packet queues cannot be opened: ${(error as Error).message}`;
  }
  const text = queueText({ egress: true, ingress: true });
  for (const program of ['iptables-restore', 'ip6tables-restore']) {
    try {
      await runProgram(['nsenter', `--net=${path}`, program], text);
    } catch {
      return `this kernel has no NFQUEUE (refused by ${program})`;
    }
  }
  return null;
}

function effectiveCapabilities(): bigint {
  const mask = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
  return BigInt(`0x${mask ?? '0'}`);
}
