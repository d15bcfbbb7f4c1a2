import { type Static, Type } from 'typebox';
import { LIST_LIMIT, LIST_LIMIT_MAX } from './defaults.ts';
import {
  closedObject,
  defaulted,
  integerFrom,
  namedObject,
  orNull,
  pageLimit,
  Text,
  SafeWhole as Whole,
} from './field.ts';

/** The node's budget and its use. Contract section 7, "Node capacity". */

/** Null is: not limited. */
const Limit = orNull(Whole);

const HELD = {
  // Of active sandboxes, and what paused ones hold.
  memory_mib: Whole,
  // Cores of active sandboxes, in thousandths.
  cpu_millis: Whole,
  // Active ones.
  sandboxes: Whole,
  // Of all sandboxes that are not gone.
  disk_mib: Whole,
  paused: Whole,
  // The part of the memory that they hold.
  paused_memory_mib: Whole,
};

const Budget = namedObject('NodeBudget', {
  memory_mib: Limit,
  // Cores, in thousandths.
  cpu_millis: Limit,
  // Active ones.
  sandboxes: Limit,
  disk_mib: Limit,
});
export type NodeLimits = Static<typeof Budget>;

const Use = namedObject('NodeUse', HELD);
/** What sandboxes hold. */
export type NodeHeld = Static<typeof Use>;

/** What `GET /api/v1/node` answers. */
export const NodeData = namedObject('Node', {
  budget: Budget,
  // What all sandboxes hold, unrecorded ones included.
  use: Use,
  // The part of `use` of sandboxes that are here and in no record.
  unrecorded: namedObject('UnrecordedUse', HELD),
  // `--team-share`, in percent; 100 is off.
  team_share: integerFrom(1, 100),
  // What one team may keep of disk, and of memory for paused sandboxes, while another holds some.
  share: namedObject('TeamShare', { disk_mib: Limit, paused_memory_mib: Limit }),
  // What teams hold, the largest disk first; without what is unrecorded.
  teams: Type.Array(namedObject('TeamUse', { team_id: Text, ...HELD })),
  has_more: Type.Boolean(),
});
export type NodeView = Static<typeof NodeData>;

/** The query of the teams' page. */
export const NodeQuery = closedObject({
  limit: pageLimit(LIST_LIMIT, LIST_LIMIT_MAX),
  offset: defaulted(Type.Integer({ minimum: 0, default: 0 })),
});
