import { type Static, Type } from 'typebox';
import { KEPT_TEXT_MAX, PATH_MAX_CHARACTERS, READY_TEXT_MAX } from '../defaults.ts';
import { RESTART_POLICIES } from '../processes.ts';
import { environmentOf } from './environment.ts';
import { namedObject, PlainText } from './field.ts';
import { integerFrom } from './query.ts';

/** Schemas of the bodies of the process routes. Contract section 4, "Processes". */

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
  signal: Type.String(),
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
