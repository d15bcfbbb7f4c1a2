import { Type } from 'typebox';
import { LIST_LIMIT_MAX, PROCESS_WAIT_MAX_MS } from '../defaults.ts';
import { OUTPUT_STREAMS, PROCESS_STATES } from '../processes.ts';
import { ResourceUsageData } from './events.ts';
import { closedObject, namedObject, OptionalTime, orNull, Time } from './field.ts';
import { Flag, integerFrom, pageLimit } from './query.ts';

/** Schemas of the paths, queries and answers of the process routes. Contract section 4, "Processes". */

const OptionalText = orNull(Type.String());

/** The path of one process. */
export const ProcessParams = Type.Object({ process_id: Type.String() });

/** The query of a list of processes or contexts. Without a limit a page is as long as any: most sandboxes have fewer. */
export const ProcessListQuery = closedObject({
  limit: pageLimit(LIST_LIMIT_MAX, LIST_LIMIT_MAX),
  cursor: Type.Optional(
    Type.String({
      pattern: '^[0-9]{1,15}-[A-Za-z0-9_.:-]{1,128}$',
      description: 'the next_cursor of the previous page',
    }),
  ),
});

/** The query of a start. */
export const StartQuery = closedObject({
  wait_ms: Type.Optional(integerFrom(0, PROCESS_WAIT_MAX_MS)),
  lossless: Flag,
});

/** The query of the route that ends a process. */
export const RemoveQuery = closedObject({ grace_ms: Type.Optional(integerFrom(0)) });

/** The query of a process's output; at most one of `offset`, `tail_bytes` and `tail_lines` is accepted. */
export const OutputQuery = closedObject({
  stream: Type.Enum([...OUTPUT_STREAMS, 'all'], { default: 'all' }),
  offset: Type.Optional(integerFrom(0)),
  tail_bytes: Type.Optional(integerFrom(0)),
  tail_lines: Type.Optional(integerFrom(0)),
  follow: Flag,
  lossless: Flag,
});

/** The query of an attached client. */
export const AttachQuery = closedObject({ offset: Type.Optional(integerFrom(0)), lossless: Flag });

/** The query of a wait. */
export const WaitQuery = closedObject({
  timeout_ms: Type.Optional(integerFrom(0)),
  for: Type.Enum(['exit', 'ready'], { default: 'exit' }),
});

/** The query of what is written to stdin. */
export const StdinQuery = closedObject({ end: Flag, offset: Type.Optional(integerFrom(0)) });

/** A process as the API shows it. */
export const ProcessData = namedObject('Process', {
  process_id: Type.String(),
  name: OptionalText,
  pid: Type.Integer(),
  state: Type.Enum(PROCESS_STATES, { title: 'ProcessState' }),
  command: Type.Array(Type.String()),
  command_truncated: Type.Boolean(),
  cwd: Type.String(),
  user: OptionalText,
  exit_code: orNull(Type.Integer()),
  signal: OptionalText,
  timed_out: Type.Boolean(),
  started_at: Time,
  exited_at: OptionalTime,
  duration_ms: orNull(Type.Number()),
  restart_count: Type.Integer(),
  ready: orNull(Type.Boolean()),
  resource_usage: ResourceUsageData,
});

/** A page of processes. */
export const ProcessListData = namedObject('ProcessList', {
  processes: Type.Array(ProcessData),
  next_cursor: orNull(Type.String()),
});

/** A started process; with `wait_ms` also the end of its output. */
export const StartedData = namedObject('StartedProcess', {
  ...ProcessData.properties,
  output: Type.Optional(
    namedObject('StartedOutput', {
      stdout: Type.String(),
      stderr: Type.String(),
      stdout_truncated: Type.Boolean(),
      stderr_truncated: Type.Boolean(),
    }),
  ),
});
