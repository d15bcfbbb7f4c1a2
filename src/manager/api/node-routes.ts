import type { NodeHeld, NodeView } from '../../contract/node.ts';
import type { NodeCapacity } from '../quotas/node-capacity.ts';
import { type NodeUse, type QuotaStore, sumOf } from '../quotas/quota-store.ts';
import type { ApiHandlers } from './routes.ts';

/** What the route of the node uses. */
export interface NodeRouteParts {
  node: NodeCapacity;
  store: QuotaStore;
}

/** The route that shows operators the node's budget and who holds it. Source: contract section 7, "Node capacity". */
export function nodeHandlers(parts: NodeRouteParts) {
  return { getNode: ({ query }) => nodeView(parts, query) } satisfies Partial<ApiHandlers>;
}

async function nodeView(
  { node, store }: NodeRouteParts,
  { limit, offset }: { limit: number; offset: number },
): Promise<NodeView> {
  const { node: recorded } = await store.nodeUse(store.db, { sandbox_id: '', team_id: '' });
  const unrecorded = node.unrecorded(null);
  const teams = await store.teamUses(store.db, limit + 1, offset);
  const { budget, team_share } = node;
  return {
    budget,
    use: heldIn(sumOf(recorded, unrecorded)),
    unrecorded: heldIn(unrecorded),
    team_share,
    share: { disk_mib: node.shareOf('disk_mib'), paused_memory_mib: node.shareOf('memory_mib') },
    teams: teams.slice(0, limit).map((each) => ({ team_id: each.team_id, ...heldIn(each) })),
    has_more: teams.length > limit,
  };
}

function heldIn(use: NodeUse): NodeHeld {
  const { memory_mib, cpu_millis, active, disk_mib, paused, paused_memory_mib } = use;
  return { memory_mib, cpu_millis, sandboxes: active, disk_mib, paused, paused_memory_mib };
}
