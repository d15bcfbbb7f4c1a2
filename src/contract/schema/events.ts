import { type TSchema, Type } from 'typebox';
import type { EventType } from '../events.ts';
import { namedObject, orNull, Time } from './field.ts';
import { integerFrom } from './query.ts';

/** Schemas of the delivered events, for documents. Contract section 2, "Event kinds and payloads". */

const Text = Type.String();
const OptionalText = orNull(Text);
const Whole = integerFrom(0);

/** What a sandbox or process uses. */
export const ResourceUsageData = namedObject('ResourceUsage', {
  cpu_ms: Whole,
  memory_bytes: Whole,
  processes: Whole,
});

const ended = {
  process_id: Text,
  pid: Whole,
  exit_code: orNull(Whole),
  signal: OptionalText,
  duration_ms: Whole,
  timed_out: Type.Boolean(),
  stdout_preview: Text,
  stderr_preview: Text,
  restart_count: Whole,
};

/** The payload of each event type. */
export const EVENT_PAYLOADS = {
  'sandbox.ready': namedObject('SandboxReadyPayload', {
    http_port: Whole,
    version: Text,
    watch_dir: OptionalText,
  }),
  'sandbox.paused': namedObject('SandboxPausedPayload', {
    reason: OptionalText,
    resource_usage: ResourceUsageData,
  }),
  'sandbox.resumed': namedObject('SandboxResumedPayload', { reason: OptionalText, paused_ms: Whole }),
  'sandbox.killed': namedObject('SandboxKilledPayload', {
    reason: Type.Enum(['signal', 'main_process_exited', 'api']),
    signal: OptionalText,
    uptime_ms: Whole,
  }),
  'sandbox.deleted': namedObject('SandboxDeletedPayload', {
    reason: Type.Enum(['api', 'ttl_expired', 'runtime_lost']),
    actor: OptionalText,
  }),
  'process.started': namedObject('ProcessStartedPayload', {
    process_id: Text,
    pid: Whole,
    command: Type.Array(Text),
    cwd: Text,
    name: OptionalText,
    restart_count: Whole,
  }),
  'process.exited': namedObject('ProcessExitedPayload', {
    ...ended,
    reason: Type.Optional(Type.Literal('unknown')),
  }),
  'process.crashed': namedObject('ProcessCrashedPayload', {
    ...ended,
    reason: Type.Enum(['signal', 'oom']),
    core_dumped: Type.Boolean(),
  }),
  'file.modified': namedObject('FileModifiedPayload', {
    event_type: Type.Enum(['create', 'write', 'remove', 'rename', 'chmod']),
    path: Text,
    path_base64: Type.Optional(Text),
    old_path: Type.Optional(Text),
    old_path_base64: Type.Optional(Text),
    is_directory: Type.Boolean(),
  }),
  'agent.event': Type.Record(Text, Type.Unknown(), { title: 'AgentEventPayload' }),
} as const satisfies Record<EventType, TSchema>;

/** An event's type as the name of a type, such as `ProcessExited`. */
export function eventName(event_type: EventType): string {
  return event_type.replaceAll(/(?:^|\.)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The schema of the body of an event. */
export function eventSchema(event_type: EventType): TSchema {
  return namedObject(event_type === 'agent.event' ? 'AgentEvent' : `${eventName(event_type)}Event`, {
    event_id: Text,
    event_type: Type.Literal(event_type),
    timestamp: Time,
    sandbox_id: Text,
    team_id: Text,
    // The manager's own event has no place in the sandbox's order.
    ...(event_type === 'sandbox.deleted' ? {} : { sequence: integerFrom(1) }),
    payload: EVENT_PAYLOADS[event_type],
  });
}
