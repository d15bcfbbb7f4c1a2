import { readdirSync, readFileSync } from 'node:fs';
import { readKernelSetting } from '../../../src/base/linux/procfs.ts';
import type { NeighbourNode } from './node.ts';

/** A table that all sandboxes of a node share: what is taken of it, what there is, and the part that is never theirs. */
export interface NodeTable {
  name: string;
  taken: number;
  most: number;
  reserve: number;
}

const setting = (name: string) => Number(readKernelSetting(name));

/** Every table of the kernel that can be read. */
export function nodeTables(node: NeighbourNode): NodeTable[] {
  const [files = 0, , files_most = 0] = readKernelSetting('fs/file-nr').split(/\s+/).map(Number);
  const threads = Number(/\/(\d+)/.exec(readFileSync('/proc/loadavg', 'utf8'))?.[1]);
  const threads_most = Math.min(setting('kernel/pid_max'), setting('kernel/threads-max'));
  return [
    { name: 'process numbers', taken: threads, most: threads_most, reserve: 1 / 4 },
    { name: 'open files', taken: files, most: files_most, reserve: 1 / 4 },
    { name: 'terminals', taken: setting('kernel/pty/nr'), most: setting('kernel/pty/max'), reserve: 1 / 4 },
    { name: 'asynchronous I/O', taken: setting('fs/aio-nr'), most: setting('fs/aio-max-nr'), reserve: 1 / 2 },
    ...socketMemory(),
    {
      name: 'tracked connections',
      taken: node.networkSetting('netfilter/nf_conntrack_count'),
      most: node.networkSetting('netfilter/nf_conntrack_max'),
      reserve: 1 / 2,
    },
    { name: 'loop devices', taken: loops(), most: 2 ** 20, reserve: 1 / 2 },
    ...neighbourTables(),
  ];
}

/** Pages that sockets hold, of all network namespaces. */
function socketMemory(): NodeTable[] {
  const protocols = readFileSync('/proc/net/protocols', 'utf8');
  return ['TCP', 'UDP'].map((name) => {
    const taken = Number(new RegExp(`^${name} +\\d+ +\\d+ +(\\d+)`, 'm').exec(protocols)?.[1]);
    const most = Number(readKernelSetting(`net/ipv4/${name.toLowerCase()}_mem`).split(/\s+/)[2]);
    return { name: `memory of ${name}`, taken, most, reserve: 1 / 4 };
  });
}

/** Addresses of neighbours, of all network namespaces. */
function neighbourTables(): NodeTable[] {
  return (['arp', 'ndisc'] as const).map((table) => {
    const [, line = ''] = readFileSync(`/proc/net/stat/${table}_cache`, 'utf8').split('\n');
    const family = table === 'arp' ? 'ipv4' : 'ipv6';
    const most = setting(`net/${family}/neigh/default/gc_thresh3`);
    return { name: `neighbours, ${table}`, taken: Number.parseInt(line, 16), most, reserve: 1 / 4 };
  });
}

function loops(): number {
  return readdirSync('/sys/block').filter((name) => name.startsWith('loop')).length;
}
