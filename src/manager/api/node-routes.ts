import { Type } from 'typebox';
import { type HttpApp, success } from '../../base/http/app.ts';
import { LIST_LIMIT, LIST_LIMIT_MAX } from '../../contract/defaults.ts';
import type { NodeHeld, NodeView } from '../../contract/node.ts';
import { closedObject, namedObject, orNull } from '../../contract/schema/field.ts';
import { integerFrom, pageLimit } from '../../contract/schema/query.ts';
import type { NodeCapacity } from '../quotas/node-capacity.ts';
import { type NodeUse, type QuotaStore, sumOf } from '../quotas/quota-store.ts';

/** What the route of the node uses. */
export interface NodeRouteParts {
  node: NodeCapacity;
  store: QuotaStore;
}

const Whole = integerFrom(0, Number.MAX_SAFE_INTEGER);
const Limit = orNull(Whole);

const HELD = {
  memory_mib: Whole,
  cpu_millis: Whole,
  sandboxes: Whole,
  disk_mib: Whole,
  paused: Whole,
  paused_memory_mib: Whole,
};

const NodeData = namedObject('Node', {
  budget: namedObject('NodeBudget', {
    memory_mib: Limit,
    cpu_millis: Limit,
    sandboxes: Limit,
    disk_mib: Limit,
  }),
  use: namedObject('NodeUse', HELD),
  unrecorded: namedObject('UnrecordedUse', HELD),
  team_share: integerFrom(1, 100),
  share: namedObject('TeamShare', { disk_mib: Limit, paused_memory_mib: Limit }),
  teams: Type.Array(namedObject('TeamUse', { team_id: Type.String(), ...HELD })),
  has_more: Type.Boolean(),
});

const PageQuery = closedObject({
  limit: pageLimit(LIST_LIMIT, LIST_LIMIT_MAX),
  offset: Type.Integer({ minimum: 0, default: 0 }),
});

/** Registers the route that shows operators the node's budget and who holds it. Source: contract section 7, "Node capacity". */
export function registerNodeRoutes(app: HttpApp, parts: NodeRouteParts): void {
  const config = {
    scope: 'admin' as const,
    doc: {
      operation_id: 'getNode',
      tag: 'node' as const,
      summary: "Get the node's budget, its use, and what teams hold of it",
      data: NodeData,
    },
  };
  app.get('/api/v1/node', { config, schema: { querystring: PageQuery } }, async (request) =>
    success(await nodeView(parts, request.query)),
  );
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
