import { type Static, Type } from 'typebox';
import { PATH_MAX_CHARACTERS } from './defaults.ts';
import { environmentOf, integerFrom, namedObject, orNull, PlainText, Text, Time } from './field.ts';
import { PtySizeBody } from './processes.ts';

/** Contexts: processes as another client calls them. Contract section 4, "Contexts". */

/** The longest `ttl_sec`: its milliseconds are still whole numbers. */
const SECONDS_MAX = Math.floor(Number.MAX_SAFE_INTEGER / 1000);

/** The body of `POST /contexts`. `repl` may hold anything: no such context is made. */
export const ContextBody = namedObject('CreateContextRequest', {
  type: Type.Optional(Type.Enum(['cmd', 'repl'])),
  cmd: Type.Optional(namedObject('ContextCommand', { command: Type.Array(PlainText, { minItems: 1 }) })),
  repl: Type.Optional(Type.Unknown()),
  wait_until_done: Type.Optional(Type.Boolean()),
  cwd: Type.Optional(
    Type.String({
      pattern: '^[^\\u0000]*$',
      maxLength: PATH_MAX_CHARACTERS,
      description: `a string without NUL of at most ${PATH_MAX_CHARACTERS} characters`,
    }),
  ),
  env_vars: Type.Optional(environmentOf(PlainText)),
  pty_size: Type.Optional(PtySizeBody),
  idle_timeout_sec: Type.Optional(integerFrom(0)),
  ttl_sec: Type.Optional(integerFrom(0, SECONDS_MAX)),
});

/** A context to create. */
export type ContextRequest = Static<typeof ContextBody>;

/** The body of `input` and `exec`. */
export const ContextInputBody = namedObject('ContextInput', { data: Text });

/** The body of `signal`. */
export const ContextSignalBody = namedObject('ContextSignal', { signal: Text });

const output = { output_raw: Text, stdout: Text, stderr: Text };
const end = { exit_code: Type.Integer(), state: Type.Enum(['stopped', 'crashed'], { title: 'ContextEnd' }) };

/** A context as the API shows it. */
export const ContextData = namedObject('Context', {
  id: Text,
  type: Type.Literal('cmd'),
  cwd: Text,
  running: Type.Boolean(),
  paused: Type.Boolean(),
  created_at: Time,
  exit_code: Type.Optional(end.exit_code),
  state: Type.Optional(end.state),
  output_raw: Type.Optional(output.output_raw),
  stdout: Type.Optional(output.stdout),
  stderr: Type.Optional(output.stderr),
});

/** A page of contexts. */
export const ContextListData = namedObject('ContextList', {
  contexts: Type.Array(ContextData),
  next_cursor: orNull(Text),
});

/** What came of `exec`. */
export const ContextExecData = namedObject('ContextResult', {
  ...output,
  exit_code: Type.Optional(end.exit_code),
  state: Type.Optional(end.state),
});
