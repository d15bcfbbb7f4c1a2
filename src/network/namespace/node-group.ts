import { createHash } from 'node:crypto';

const KEY_LENGTH = 8;

/** The beginning of the names of all groups' tables. */
export const TABLE_PREFIX = 'sandboxes_';

/**
 * The names by which everything that belongs to one group of managers is known to the node's kernel. Managers with the
 * same data directory are a group; several groups may share a node, and none touches what belongs to another.
 */
export interface NodeGroup {
  /** The data directory. */
  data_dir: string;
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
  const number = Number.parseInt(key, 16) >>> 1 || 1;
  return { data_dir, prefix: `sbx-${key}-`, table: `${TABLE_PREFIX}${key}`, number };
}
