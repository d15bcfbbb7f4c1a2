import { createHash } from 'node:crypto';

const KEY_LENGTH = 8;

/**
 * The names by which everything that belongs to one group of managers is known to the node's kernel. Managers with the
 * same data directory are a group; several groups may share a node, and none touches what belongs to another.
 */
export interface NodeGroup {
  /** The beginning of the names of its sandboxes' namespaces. */
  prefix: string;
  /** Its table of the packet filter. */
  table: string;
  /** The interface group of its links. */
  number: number;
}

/** The group of the managers with this data directory, an absolute path without links. */
export function nodeGroup(data_dir: string): NodeGroup {
  const key = createHash('sha256').update(data_dir).digest('hex').slice(0, KEY_LENGTH);
  // Group 0 is that of all other interfaces.
  return { prefix: `sbx-${key}-`, table: `sandboxes_${key}`, number: Number.parseInt(key, 16) >>> 1 || 1 };
}
