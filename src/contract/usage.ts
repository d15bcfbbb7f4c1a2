import { type Static, Type } from 'typebox';
import { LIST_LIMIT, LIST_LIMIT_MAX } from './defaults.ts';
import { closedObject, namedObject, pageLimit, Text, Time, Whole } from './field.ts';
import { unitOf, WINDOW_TYPES } from './words.ts';

/** Metered usage as closed windows. Contract section 7, "Usage". */

const Kind = Type.Enum(WINDOW_TYPES, { title: 'WindowType' });

/** A closed window. It never changes. */
const Window = namedObject('UsageWindow', {
  window_id: Text,
  region_id: Text,
  cluster_id: Text,
  window_type: Kind,
  subject_type: Type.Literal('sandbox'),
  subject_id: Text,
  sandbox_id: Text,
  window_start: Time,
  window_end: Time,
  value: Whole,
  unit: Type.Enum([...new Set(WINDOW_TYPES.map(unitOf))]),
  recorded_at: Time,
});
export type UsageWindow = Static<typeof Window>;

/** A page of windows in commit order. `next_cursor` is where the next page begins, also after the last window. */
export const UsagePageData = namedObject('UsagePage', {
  windows: Type.Array(Window),
  next_cursor: Type.String({ minLength: 1 }),
});
export type UsagePage = Static<typeof UsagePageData>;

/** The query of a page. */
export const UsageQuery = closedObject({
  cursor: Type.Optional(Text),
  limit: pageLimit(LIST_LIMIT, LIST_LIMIT_MAX),
  window_type: Type.Optional(Kind),
});
