import { type Static, Type } from 'typebox';
import {
  KEPT_TEXT_MAX,
  LIST_LIMIT_MAX,
  PATH_MAX_CHARACTERS,
  PROCESS_WAIT_MAX_MS,
  READY_TEXT_MAX,
} from './defaults.ts';
import {
  closedObject,
  defaulted,
  environmentOf,
  Flag,
  integerFrom,
  namedObject,
  OptionalText,
  OptionalTime,
  orNull,
  PlainText,
  pageLimit,
  ResourceUsageData,
  Text,
  Time,
} from './field.ts';
import { OUTPUT_STREAMS, type OutputStream, PROCESS_STATES, RESTART_POLICIES } from './words.ts';

/** Processes: requests, queries and answers. Contract section 4, "Processes". */

const milliseconds = (minimum: number) => integerFrom(minimum, Number.MAX_SAFE_INTEGER);
const Name = Type.String({ pattern: '^[^\\u0000]+$', description: 'a non-empty string without NUL' });
/** A text that the daemon keeps in memory as long as it keeps the process. */
const Kept = Type.String({
  pattern: '^[^\\u0000]*$',
  maxLength: KEPT_TEXT_MAX,
  description: `a string without NUL of at most ${KEPT_TEXT_MAX} characters`,
});

/** The path of a working directory: the kernel takes no longer one. */
const Folder = Type.String({
  pattern: '^[^\\u0000]+$',
  maxLength: PATH_MAX_CHARACTERS,
  description: `a non-empty string without NUL of at most ${PATH_MAX_CHARACTERS} characters`,
});

/** The size of a terminal in characters; the kernel stores its sides in 16 bits. */
export const PtySizeBody = namedObject('TerminalSize', {
  cols: integerFrom(1, 65_535),
  rows: integerFrom(1, 65_535),
});

/** `max_restarts`: 0 means none, absent means no limit. `backoff_ms` is the delay before the first restart. */
const RestartBody = namedObject('RestartPolicy', {
  policy: Type.Enum(RESTART_POLICIES),
  max_restarts: Type.Optional(integerFrom(0, Number.MAX_SAFE_INTEGER)),
  backoff_ms: Type.Optional(milliseconds(0)),
});

/** When a process counts as ready: something listens on the TCP port, or the text appeared in its output. */
const ReadyBody = Type.Object(
  {
    port: Type.Optional(integerFrom(1, 65_535)),
    log: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: READY_TEXT_MAX,
        description: `a text of 1 to ${READY_TEXT_MAX} characters`,
      }),
    ),
  },
  { additionalProperties: false, title: 'ReadyProbe', description: 'exactly one of port and log' },
);

/** The body of `POST /processes`. `checkProcessRequest` checks what it cannot express. */
export const ProcessBody = Type.Object(
  {
    command: Type.Optional(
      Type.Array(PlainText, {
        minItems: 1,
        description: 'an array of strings without NUL, of which the first is the program',
      }),
    ),
    shell: Type.Optional(Name),
    process_id: Type.Optional(
      Type.String({
        pattern: '^(?!\\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$',
        description: '1 to 128 of A-Z a-z 0-9 _ - . : and not . or ..',
      }),
    ),
    cwd: Type.Optional(Folder),
    env: Type.Optional(environmentOf(PlainText)),
    user: Type.Optional(Kept),
    name: Type.Optional(Kept),
    stdin: Type.Optional(Type.Enum(['pipe', 'ignore'])),
    timeout_ms: Type.Optional(milliseconds(1)),
    restart: Type.Optional(RestartBody),
    pty: Type.Optional(PtySizeBody),
    ready: Type.Optional(ReadyBody),
  },
  {
    additionalProperties: false,
    title: 'StartProcessRequest',
    description: 'exactly one of command and shell',
  },
);

/** The body of a signal. */
export const SignalBody = namedObject('ProcessSignal', {
  signal: Text,
  scope: Type.Optional(Type.Enum(['group', 'leader'])),
});

/** A process to start. Exactly one of `command` and `shell` is given. */
export type ProcessRequest = Static<typeof ProcessBody>;

/** When a process is started again, how often, and after which delay. */
export type RestartOptions = Static<typeof RestartBody>;

/** The size of a terminal, in characters. */
export type PtySize = Static<typeof PtySizeBody>;

/** When a process counts as ready. Exactly one of `port` and `log` is given. */
export type ReadyProbe = Static<typeof ReadyBody>;

/** The path of one process. */
export const ProcessParams = Type.Object({ process_id: Text });

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
  stream: defaulted(Type.Enum([...OUTPUT_STREAMS, 'all'], { default: 'all' })),
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
  for: defaulted(Type.Enum(['exit', 'ready'], { default: 'exit' })),
});

/** The query of what is written to stdin. */
export const StdinQuery = closedObject({ end: Flag, offset: Type.Optional(integerFrom(0)) });

/** A process as the API shows it. */
export const ProcessData = namedObject('Process', {
  process_id: Text,
  name: OptionalText,
  pid: Type.Integer(),
  state: Type.Enum(PROCESS_STATES, { title: 'ProcessState' }),
  // It may be only the beginning.
  command: Type.Array(Text),
  command_truncated: Type.Boolean(),
  cwd: Text,
  // Null for the daemon's own account.
  user: OptionalText,
  // Null while it runs and where it is unknown.
  exit_code: orNull(Type.Integer()),
  signal: OptionalText,
  // Of the last run; false and null while it runs.
  timed_out: Type.Boolean(),
  started_at: Time,
  exited_at: OptionalTime,
  duration_ms: orNull(Type.Number()),
  restart_count: Type.Integer(),
  // Null without a probe.
  ready: orNull(Type.Boolean()),
  resource_usage: ResourceUsageData,
});
export type ProcessView = Static<typeof ProcessData>;

/** A page of processes. */
export const ProcessListData = namedObject('ProcessList', {
  processes: Type.Array(ProcessData),
  next_cursor: orNull(Text),
});

/** A started process; with `wait_ms` also the end of its output. */
export const StartedData = namedObject('StartedProcess', {
  ...ProcessData.properties,
  output: Type.Optional(
    namedObject('StartedOutput', {
      stdout: Text,
      stderr: Text,
      stdout_truncated: Type.Boolean(),
      stderr_truncated: Type.Boolean(),
    }),
  ),
});

/** A byte offset into each stream of a process. */
export type OutputPosition = Record<OutputStream, number>;
