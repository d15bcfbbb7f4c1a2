import { Type } from 'typebox';
import { PROCESS_WAIT_MAX_MS } from '../defaults.ts';
import { OUTPUT_STREAMS } from '../processes.ts';
import { closedObject } from './field.ts';
import { Flag, integerFrom } from './query.ts';

/** Schemas of the paths and queries of the process routes. Contract section 4, "Processes". */

/** The path of one process. */
export const ProcessParams = Type.Object({ process_id: Type.String() });

/** The query of a start. */
export const StartQuery = closedObject({ wait_ms: Type.Optional(integerFrom(0, PROCESS_WAIT_MAX_MS)) });

/** The query of the route that ends a process. */
export const RemoveQuery = closedObject({ grace_ms: Type.Optional(integerFrom(0)) });

/** The query of a process's output; at most one of `offset`, `tail_bytes` and `tail_lines` is accepted. */
export const OutputQuery = closedObject({
  stream: Type.Enum([...OUTPUT_STREAMS, 'all'], { default: 'all' }),
  offset: Type.Optional(integerFrom(0)),
  tail_bytes: Type.Optional(integerFrom(0)),
  tail_lines: Type.Optional(integerFrom(0)),
  follow: Flag,
});

/** The query of an attached client. */
export const AttachQuery = closedObject({ offset: Type.Optional(integerFrom(0)) });

/** The query of a wait. */
export const WaitQuery = closedObject({
  timeout_ms: Type.Optional(integerFrom(0)),
  for: Type.Enum(['exit', 'ready'], { default: 'exit' }),
});

/** The query of what is written to stdin. */
export const StdinQuery = closedObject({ end: Flag, offset: Type.Optional(integerFrom(0)) });
