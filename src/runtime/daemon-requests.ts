import type { Static } from 'typebox';
import type { Log } from '../base/log.ts';
import { VERSION } from '../base/version.ts';
import { LIFECYCLE_PAGE_RECORDS, LIFECYCLE_PATH, type WebhookEgress } from '../contract/control-socket.ts';
import { ApiError, type ErrorCode, invalidField } from '../contract/errors.ts';
import type { InitialisedData, SandboxView } from '../contract/sandbox.ts';
import { type Feature, isSameMajor } from '../contract/versions.ts';
import { type FoundLifecycle, lifecycleEvent } from '../outbox/sqlite/undelivered/lifecycle-event.ts';
import { type DaemonAddress, type DaemonResponse, requestDaemon } from './control-client.ts';
import type { LifecyclePage, RecordTrust, RuntimeSpec, RuntimeState } from './runtime.ts';

/** How long a daemon may take to answer a request that changes nothing, in ms. */
export const DAEMON_ANSWER_TIMEOUT_MS = 5_000;
/** How long a start, a pause with its freeze and flush, or another change may take, in ms: a disk may be slow. */
export const DAEMON_CHANGE_TIMEOUT_MS = 60_000;

/** How long a daemon may take to end after it was asked to, in ms: twice its grace period, and the commit of `sandbox.killed`. */
export const STOP_TIMEOUT_MS = 30_000;

/** A page without events of a sandbox's own life. */
export const NO_EVENTS: LifecyclePage = { events: [], more: false, refused: 0 };
const NOT_FOUND = 404;

/**
 * The body of an init; `allow_cidrs` are the ranges that the webhook may reach in addition to public addresses. Through
 * the manager the daemon is given none: addresses are checked where they are dialled.
 * Source: contract section 4, POST `/sandbox/init`.
 */
export function initBody(spec: RuntimeSpec, allow_cidrs: string[], egress: WebhookEgress): object {
  const { sandbox_id, team_id, webhook, env, record_key } = spec;
  if (!webhook) return { sandbox_id, team_id, env, record_key };
  const { url, secret, watch_dir, watch_ignore, events, retry } = webhook;
  const given = {
    url,
    ...(egress === 'manager' ? { egress } : { allow_cidrs }),
    ...(secret === '' ? {} : { secret }),
    ...(watch_dir === null ? {} : { watch_dir }),
    ...(watch_ignore.length === 0 ? {} : { watch_ignore }),
    ...(events === null ? {} : { events }),
    ...(retry === 'transient' ? {} : { retry }),
  };
  return { sandbox_id, team_id, webhook: given, env, record_key };
}

/** The state in the answer of GET `/sandbox`, `lost` for one that is none of the daemon's; null if it did not succeed. */
export function stateIn(answer: DaemonResponse): RuntimeState | null {
  if (!isSuccess(answer)) return null;
  const { state } = fieldsOf(answer.data) as Partial<SandboxView>;
  return state === 'paused' || state === 'running' ? state : 'lost';
}

/** The body of a pause or resume. A daemon of before knows no `memory`, and is told of it only where it matters. */
export function switchBody(reason: string | null, memory: boolean): object {
  return { reason, ...(memory ? {} : { memory }) };
}

/** What a request that a daemon has done came to: only a pause or resume says that no process was kept. */
export function changeIn(answer: DaemonResponse): 'done' | 'emptied' {
  const { memory } = fieldsOf(answer.outcome === 'answered' ? answer.data : null);
  return memory === false ? 'emptied' : 'done';
}

/** Whether the daemon has done what it was asked. */
export function isSuccess(
  answer: DaemonResponse,
): answer is Extract<DaemonResponse, { outcome: 'answered' }> {
  return answer.outcome === 'answered' && answer.status === 200;
}

/** Fields of an answer to an init that this version knows. */
const INIT_FIELDS: readonly (keyof Static<typeof InitialisedData>)[] = ['state', 'version', 'features'];
/** Names that are told at most, and characters of one: daemons say what they like. */
const TOLD_MAX = 20;
const TOLD_MAX_LENGTH = 64;

/** The daemons of any version that a manager initialises. */
export class ServedDaemons {
  readonly #log: Log;
  readonly #told = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * The features of the daemon that answers an init. Throws `daemon_too_old` where it is of another major version than this
   * manager, or knows less than it was told. Fields of the answer that are not known are told once.
   */
  check(answer: DaemonResponse, { webhook }: Pick<RuntimeSpec, 'webhook'>): unknown[] {
    const { version, features } = versionIn(answer);
    if (version !== null && !isSameMajor(version, VERSION)) throw daemonTooOld(version);
    if (webhook?.retry === 'any') checkFeature('webhook_retry', version, features);
    this.#tellUnknown(answer, version);
    return features;
  }

  #tellUnknown(answer: DaemonResponse, version: string | null): void {
    const given = Object.keys(fieldsOf(answer.outcome === 'answered' ? answer.data : null));
    const fields = given
      .filter((name) => !INIT_FIELDS.some((known) => known === name))
      .map((name) => name.slice(0, TOLD_MAX_LENGTH))
      .filter((name) => !this.#told.has(name))
      .slice(0, TOLD_MAX - this.#told.size);
    if (fields.length === 0) return;
    for (const name of fields) this.#told.add(name);
    this.#log.warn({ fields, version }, "fields of a daemon's answer are not known and ignored");
  }
}

/** Throws `daemon_too_old` where a daemon does not have a feature, and `unavailable` without an answer. */
export async function requireFeature(daemon: DaemonAddress, feature: Feature): Promise<void> {
  const answer = await healthOf(daemon);
  if (!isSuccess(answer)) {
    throw new ApiError('unavailable', "The sandbox's daemon does not answer.", { retry_after_s: 1 });
  }
  const { version, features } = versionIn(answer);
  checkFeature(feature, version, features);
}

/**
 * Throws `daemon_too_old` where a pause or resume is to keep no memory and the daemon cannot do that. A daemon that does not
 * answer is asked for the change itself, whose answer says what has become of it.
 */
export async function checkSwitch(daemon: DaemonAddress, memory: boolean): Promise<void> {
  if (memory) return;
  const answer = await healthOf(daemon);
  if (!isSuccess(answer)) return;
  const { version, features } = versionIn(answer);
  checkFeature('switch_without_memory', version, features);
}

/** The body that pauses a fork, which has no process yet: a daemon that can goes on to deliver what it has. */
export function forkPauseBody(features: readonly unknown[]): object {
  return switchBody('fork', !features.includes('switch_without_memory' satisfies Feature));
}

function healthOf(daemon: DaemonAddress): Promise<DaemonResponse> {
  const path = { path: '/healthz', is_at_root: true } as const;
  const request = { method: 'GET', ...path, within_ms: DAEMON_ANSWER_TIMEOUT_MS };
  return requestDaemon(daemon, request);
}

function checkFeature(feature: Feature, version: string | null, features: unknown[]): void {
  if (!features.includes(feature)) throw daemonTooOld(version ?? 'of before there were any');
}

function versionIn(answer: DaemonResponse): { version: string | null; features: unknown[] } {
  const { version, features } = fieldsOf(answer.outcome === 'answered' ? answer.data : null);
  const is_version = typeof version === 'string' && /^\d[\w.+-]{0,63}$/.test(version);
  return { version: is_version ? version : null, features: Array.isArray(features) ? features : [] };
}

function daemonTooOld(version: string): ApiError {
  const text = `The sandbox's daemon has version ${version}, which does not serve this; the manager has ${VERSION}.`;
  return new ApiError('daemon_too_old', text);
}

const MESSAGE_MAX = 1024;

/** The error for an answer that is no success; fields are named as in the spec. Nothing in the answer is trusted. */
export function daemonError(answer: DaemonResponse): ApiError {
  if (answer.outcome === 'unreachable') {
    return new ApiError('internal_error', `The sandbox's daemon does not answer (${answer.reason}).`);
  }
  const { code, message, details } = fieldsOf(answer.error);
  const known = PASSED_CODES.find((each) => each === code) ?? 'internal_error';
  const said = typeof message === 'string' ? message.slice(0, MESSAGE_MAX) : undefined;
  const { field } = fieldsOf(details);
  if (known !== 'invalid_request' || typeof field !== 'string' || field.length > MESSAGE_MAX) {
    return new ApiError(known, said);
  }
  const prefix = `${field}: `;
  return invalidField(field, said?.startsWith(prefix) ? said.slice(prefix.length) : (said ?? 'is invalid'));
}

/** The codes that are passed on to the caller; any other becomes `internal_error`. */
const PASSED_CODES: ErrorCode[] = [
  'invalid_request',
  'conflict',
  'gone',
  'internal_error',
  'outbox_full',
  'outbox_unavailable',
  'shutting_down',
];

/** The body that replaces an environment by `env`; `answer` is that of `/sandbox/env`, with the names that are there. */
export function environmentBody(answer: DaemonResponse, env: Record<string, string>): object {
  return { env: { ...Object.fromEntries(namesIn(answer).map((name) => [name, null])), ...env } };
}

/** The names of variables in the answer of `/sandbox/env`; empty if there are none. */
export function namesIn(answer: DaemonResponse): string[] {
  const { names } = fieldsOf(answer.outcome === 'answered' ? answer.data : null);
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
}

/** How many events a daemon has not delivered; null without an answer. */
export async function pendingOf(daemon: DaemonAddress): Promise<number | null> {
  const request = { method: 'GET', path: '/sandbox', within_ms: DAEMON_ANSWER_TIMEOUT_MS };
  const answer = await requestDaemon(daemon, request);
  const { outbox } = fieldsOf(answer.outcome === 'answered' ? answer.data : null);
  const { pending } = fieldsOf(outbox);
  return typeof pending === 'number' ? pending : null;
}

/** Asks a daemon to end its sandbox and itself. Gives whether it will. */
export async function askToStop(daemon: DaemonAddress): Promise<boolean> {
  const request = { method: 'POST', path: '/sandbox/stop', within_ms: DAEMON_ANSWER_TIMEOUT_MS };
  const answer = await requestDaemon(daemon, request);
  return answer.outcome === 'answered' && answer.status === 202;
}

/**
 * Asks a sandbox's daemon for the events of its own life after a sequence. Nothing in the answer is trusted but what the
 * record key authenticates. Null without an answer; a daemon that does not know the question has none.
 */
export async function lifecycleOf(
  address: DaemonAddress,
  trust: RecordTrust & { sandbox_id: string },
  after: number,
): Promise<LifecyclePage | null> {
  const path = `${LIFECYCLE_PATH}?after=${after}&limit=${LIFECYCLE_PAGE_RECORDS}`;
  const request = { method: 'GET', path, scope: 'manage', within_ms: DAEMON_ANSWER_TIMEOUT_MS } as const;
  const answer = await requestDaemon(address, request);
  if (answer.outcome !== 'answered') return null;
  if (answer.status === NOT_FOUND) return NO_EVENTS;
  const records = recordsIn(answer.data);
  if (answer.status !== 200 || records === null) return null;
  const found = records
    .slice(0, LIFECYCLE_PAGE_RECORDS)
    .map((record) => lifecycleEvent(stored(record), trust));
  const events = found.filter((event) => event !== null).filter(({ sequence }) => sequence > after);
  events.sort((a, b) => a.sequence - b.sequence);
  return { events, more: records.length >= LIFECYCLE_PAGE_RECORDS, refused: found.length - events.length };
}

function recordsIn(data: unknown): unknown[] | null {
  const { records } = (data ?? {}) as { records?: unknown };
  return Array.isArray(records) ? records : null;
}

/** The record as it was stored: an answer has its bytes in hex. */
function stored(record: unknown): FoundLifecycle {
  const { mac, ...row } = (record ?? {}) as FoundLifecycle;
  return { ...row, mac: typeof mac === 'string' ? Buffer.from(mac, 'hex') : null };
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
