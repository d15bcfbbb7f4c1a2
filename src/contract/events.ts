import type { Static, TSchema, Type } from 'typebox';
import type * as fields from './field.ts';

/**
 * The event kinds, a row each. Contract section 2, "Event kinds and payloads". This file is read where programs start: a
 * schema is made only by who asks for one, of the pieces that it is given.
 */

/** What schemas of payloads are made of: typebox, and the pieces that every noun uses. */
export type PayloadPieces = typeof fields & { Type: typeof Type };

type Payload = Readonly<Record<string, unknown>>;

/** A kind of event. */
interface EventRow {
  /** What has happened, for documents. */
  summary: string;
  /** The schema of its payload. */
  payload(pieces: PayloadPieces): TSchema;
  /** What has happened, in one line. It shows what was received, which may break the contract. */
  line(payload: Payload, words: LineWords): string;
}

/** How a line says what only its reader can. */
export interface LineWords {
  /** A duration in ms, such as `1.2 s`. */
  duration(ms: number): string;
  /** The payload's JSON, as it was sent. */
  json: string;
}

function rowsOf<const Rows extends Record<string, EventRow>>(rows: Rows): Rows {
  return rows;
}

const ended = ({ Type, Text, OptionalText, Whole, orNull }: PayloadPieces) => ({
  process_id: Text,
  pid: Whole,
  // The code, or 128 + the signal's number; null only with the reason `unknown`: the daemon was not running then.
  exit_code: orNull(Whole),
  signal: OptionalText,
  duration_ms: Whole,
  timed_out: Type.Boolean(),
  // At most the last 2 KiB.
  stdout_preview: Text,
  stderr_preview: Text,
  restart_count: Whole,
});

const EVENTS = rowsOf({
  'sandbox.ready': {
    summary: 'The sandbox listens, watches, and has started its main command',
    payload: ({ namedObject, Text, OptionalText, Whole }) =>
      namedObject('SandboxReadyPayload', { http_port: Whole, version: Text, watch_dir: OptionalText }),
    line: ({ http_port, watch_dir }) =>
      `port ${show(http_port)}, ${watch_dir === null ? 'watching nothing' : `watching ${show(watch_dir)}`}`,
  },
  'sandbox.paused': {
    summary: 'A pause is complete',
    payload: ({ namedObject, OptionalText, ResourceUsageData }) =>
      namedObject('SandboxPausedPayload', { reason: OptionalText, resource_usage: ResourceUsageData }),
    line: ({ reason }) => because(reason, 'paused'),
  },
  'sandbox.resumed': {
    summary: 'A resume is complete',
    payload: ({ namedObject, OptionalText, Whole }) =>
      namedObject('SandboxResumedPayload', { reason: OptionalText, paused_ms: Whole }),
    line: ({ reason, paused_ms }, words) => `${because(reason, 'resumed')} after ${time(paused_ms, words)}`,
  },
  'sandbox.killed': {
    summary: 'The sandbox has ended, and its processes with it',
    payload: ({ Type, namedObject, OptionalText, Whole }) =>
      namedObject('SandboxKilledPayload', {
        reason: Type.Enum(['signal', 'main_process_exited', 'api']),
        signal: OptionalText,
        uptime_ms: Whole,
      }),
    line: ({ signal, reason, uptime_ms }, words) =>
      `${show(signal ?? reason)} after ${time(uptime_ms, words)}`,
  },
  'sandbox.deleted': {
    summary: 'The deletion of the sandbox is committed',
    payload: ({ Type, namedObject, OptionalText }) =>
      namedObject('SandboxDeletedPayload', {
        reason: Type.Enum(['api', 'ttl_expired', 'runtime_lost']),
        actor: OptionalText,
      }),
    line: ({ reason }) => because(reason, 'deleted'),
  },
  'process.started': {
    summary: 'A process was started, or started again',
    payload: ({ Type, namedObject, Text, OptionalText, Whole }) =>
      namedObject('ProcessStartedPayload', {
        process_id: Text,
        pid: Whole,
        command: Type.Array(Text),
        cwd: Text,
        name: OptionalText,
        // 0 for the first run.
        restart_count: Whole,
      }),
    line: (payload) =>
      `${processName(payload)}${payload.restart_count ? ` restart ${show(payload.restart_count)}` : ''}: ${show(payload.command)}`,
  },
  'process.exited': {
    summary: 'A process has ended by itself, or as it was asked to',
    payload: (pieces) =>
      pieces.namedObject('ProcessExitedPayload', {
        ...ended(pieces),
        reason: pieces.Type.Optional(pieces.Type.Literal('unknown')),
      }),
    line: endLine,
  },
  'process.crashed': {
    summary: 'A process was ended by a signal that nobody asked for, or for lack of memory',
    payload: (pieces) =>
      pieces.namedObject('ProcessCrashedPayload', {
        ...ended(pieces),
        reason: pieces.Type.Enum(['signal', 'oom']),
        core_dumped: pieces.Type.Boolean(),
      }),
    line: endLine,
  },
  'file.modified': {
    summary: 'Something changed in the watched directory',
    // Paths are absolute, and their `…_base64` the bytes of one that is not UTF-8; an old one only with `rename`.
    payload: ({ Type, namedObject, Text }) =>
      namedObject('FileModifiedPayload', {
        event_type: Type.Enum(['create', 'write', 'remove', 'rename', 'chmod']),
        path: Text,
        path_base64: Type.Optional(Text),
        old_path: Type.Optional(Text),
        old_path_base64: Type.Optional(Text),
        is_directory: Type.Boolean(),
      }),
    line: ({ event_type, path, old_path }) =>
      event_type === 'rename'
        ? `rename ${show(old_path)} → ${show(path)}`
        : `${show(event_type)} ${show(path)}`,
  },
  'agent.event': {
    summary: 'The payload that was published',
    payload: ({ Type, Text }) => Type.Record(Text, Type.Unknown(), { title: 'AgentEventPayload' }),
    line: (_payload, { json }) => json,
  },
});

/** One of `EVENT_TYPES`. */
export type EventType = keyof typeof EVENTS;

/** Every event type. */
export const EVENT_TYPES = Object.keys(EVENTS) as EventType[];

/** The kinds that are in the team's feed: those of a sandbox's own life. */
export const FEED_EVENT_TYPES = EVENT_TYPES.filter((type) => type.startsWith('sandbox.')) as FeedEventType[];

/** One of `FEED_EVENT_TYPES`. */
export type FeedEventType = Extract<EventType, `sandbox.${string}`>;

/** The row of a kind; null for one of a later version. */
export function eventRow(event_type: EventType): EventRow;
export function eventRow(event_type: string): EventRow | null;
export function eventRow(event_type: string): EventRow | null {
  return Object.hasOwn(EVENTS, event_type) ? EVENTS[event_type as EventType] : null;
}

/** The payload of each event type. */
export type EventPayloads = {
  [Type in EventType]: Static<ReturnType<(typeof EVENTS)[Type]['payload']>>;
};

export type FileModified = EventPayloads['file.modified'];
/** What happened to a file or directory. */
export type FileOperation = FileModified['event_type'];

/** An event before it has an id and a sequence. `happened_at_ms` counts from the Unix epoch. */
export type SandboxEvent = {
  [Type in EventType]: { event_type: Type; happened_at_ms: number; payload: EventPayloads[Type] };
}[EventType];

/** An event that process supervision emits. */
export type ProcessEvent = Extract<SandboxEvent, { event_type: `process.${string}` }>;

function processName({ name, pid }: Payload): string {
  return name ? `${show(name)} (pid ${show(pid)})` : `pid ${show(pid)}`;
}

function endLine(payload: Payload, words: LineWords): string {
  return `${processName(payload)} ${ending(payload)} after ${time(payload.duration_ms, words)}`;
}

function ending({ reason, timed_out, signal, exit_code, core_dumped }: Payload): string {
  if (reason === 'oom') return 'ran out of memory';
  if (timed_out === true) return `timed out, ${show(signal ?? exit_code)}`;
  if (signal) return `ended by ${show(signal)}${core_dumped ? ', core dumped' : ''}`;
  return exit_code === null ? 'ended, exit code unknown' : `exited with ${show(exit_code)}`;
}

function because(reason: unknown, what: string): string {
  return reason ? `${what}: ${show(reason)}` : what;
}

function show(value: unknown): string {
  if (Array.isArray(value)) return value.map(show).join(' ');
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '?');
}

function time(value: unknown, { duration }: LineWords): string {
  return typeof value === 'number' ? duration(value) : show(value);
}
