import { readFileSync } from 'node:fs';
import { nodeGroup } from '../../../src/network/namespace/node-group.ts';
import { runSync } from '../run-sync.ts';
import type { Topology } from './topology.ts';

/** What is left on a node of the networks of a data directory's sandboxes, and of their mounts. */
export function remainsOf({ node }: Topology, data_dir: string): string[] {
  const { prefix, number, table } = nodeGroup(data_dir);
  const lines = (...command: string[]) =>
    runSync(...command)
      .split('\n')
      .filter(Boolean);
  const rules = lines('ip', 'netns', 'exec', node, 'nft', 'list', 'ruleset');
  return [
    ...lines('ip', 'netns').filter((name) => name.startsWith(prefix)),
    ...lines('ip', '-n', node, '-o', 'link', 'show', 'group', String(number)),
    ...rules.filter((line) => /vsbx\d/.test(line) || line.includes(table)),
    ...readFileSync('/proc/self/mounts', 'utf8')
      .split('\n')
      .filter((line) => line.includes(data_dir)),
  ];
}
