import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { timestamp } from '../base/clock.ts';
import { kernelRandom } from '../base/entropy.ts';
import { COMMAND_SHOWN_BYTES } from '../contract/defaults.ts';
import type { ProcessEvent } from '../contract/events.ts';
import type { ProcessRequest, ProcessView } from '../contract/processes.ts';
import type { ProcessState } from '../contract/words.ts';
import { commandOf } from './start/command.ts';

/**
 * What the daemon knows of a process, in memory and on disk, so that the next daemon finds it after this one was killed.
 * The request itself, which may be large, is on disk alone: see RecordFile.
 *
 * It is written before the process is started (without a `run`), when it has started, when it ends, and when its events
 * are stored. If it is missing or damaged, the process is unknown and the folder is removed. If it cannot be read right
 * now, the folder is kept and read again later.
 */
export interface ProcessRecord {
  process_id: string;
  /** The request without its program: `command`, `shell`, `env` and `cwd` are read from the disk where they are needed. */
  request: ProcessRequest;
  /** A digest of the whole request: equal for equal ones. */
  fingerprint: string;
  /** The argument vector, or the beginning of it. */
  command: [string, ...string[]];
  /** Whether `command` is only the beginning. Absent: it is whole. */
  is_command_cut?: boolean;
  cwd: string;
  /** The tag in the environment of every member of its tree; `mark` is its name on disk. */
  mark: string;
  created_at_ms: number;
  restart_count: number;
  /** The present or last run; null until the first has a pid. */
  run: RunRecord | null;
  /** How the last run ended; null while a run is in progress. */
  end: EndRecord | null;
  /** Whether `end` is final: no restart follows. */
  is_final: boolean;
  /** Whether its members were stopped by signal for a pause. */
  is_stopped: boolean;
  /** Whether a lossless follower is expected from the first byte. Absent in records of earlier versions. */
  is_lossless?: boolean;
  /** Events that may not be stored yet, oldest first. */
  unsent: UnsentEvent[];
}

/** One run. The pid, the boot and the start time together name one process for good. */
export interface RunRecord {
  pid: number;
  boot_id: string;
  start_ticks: number;
  started_at_ms: number;
  /** The account that it was started as; null is the daemon's own. Absent in records of earlier versions. */
  user?: string | null;
  /** When it was known to have ended, in ticks after boot: see TreeRoot. Absent while it runs. */
  ended_ticks?: number;
  /** Null if the request has no ready probe. */
  is_ready: boolean | null;
}

/** How a run ended. `exit_code` is null if it is unknown. `timed_out` and `duration_ms` are absent in records of earlier versions. */
export interface EndRecord {
  kind: 'exited' | 'crashed';
  exit_code: number | null;
  signal: string | null;
  timed_out?: boolean;
  exited_at_ms: number;
  duration_ms?: number;
}

/** An event that may not be stored yet. `key` names it, also when it is emitted again after a restart. Its command is the record's. */
export interface UnsentEvent {
  key: string;
  event: ProcessEvent;
}

/** The record of a process that is to be started. `is_lossless`: see ProcessRecord. */
export function newRecord(
  process_id: string,
  request: ProcessRequest,
  created_at_ms: number,
  is_lossless: boolean,
): ProcessRecord {
  return {
    process_id,
    ...keptOf(request),
    cwd: resolve(request.cwd ?? '.'),
    mark: kernelRandom(12).toString('hex'),
    created_at_ms,
    restart_count: 0,
    run: null,
    end: null,
    is_final: false,
    is_stopped: false,
    is_lossless,
    unsent: [],
  };
}

/** What a record keeps of a request: little, however large that is. */
export function keptOf(
  request: ProcessRequest,
): Pick<ProcessRecord, 'request' | 'fingerprint' | 'command' | 'is_command_cut'> {
  const { command: _command, shell: _shell, env: _env, cwd: _cwd, process_id: _id, ...kept } = request;
  const whole = commandOf(request);
  const command = beginningOf(whole, COMMAND_SHOWN_BYTES);
  const cut = command === whole ? {} : { is_command_cut: true };
  return { request: kept, fingerprint: requestFingerprint(request), command, ...cut };
}

/** So much text is digested at a time: a large request is not made once more as a text. */
const DIGESTED_CHARACTERS = 16 * 1024;

/** A digest that is equal for equal requests, whatever their `process_id` and the order of their keys. */
export function requestFingerprint(request: ProcessRequest): string {
  const { process_id: _, ...rest } = request;
  const hash = createHash('sha256');
  let text = '';
  const add = (part: string) => {
    text += part;
    if (text.length < DIGESTED_CHARACTERS) return;
    hash.update(text);
    text = '';
  };
  addSorted(rest, add);
  return hash.update(text).digest('base64url');
}

/** A value as JSON, with the keys of its objects sorted. */
function addSorted(value: unknown, add: (part: string) => void): void {
  if (Array.isArray(value)) {
    add('[');
    for (const each of value) {
      addSorted(each, add);
      add(',');
    }
    add(']');
  } else if (typeof value === 'object' && value !== null) {
    add('{');
    for (const key of Object.keys(value).sort()) {
      add(`${JSON.stringify(key)}:`);
      addSorted((value as Record<string, unknown>)[key], add);
      add(',');
    }
    add('}');
  } else add(JSON.stringify(value) ?? 'null');
}

/** What an argument costs in addition to its bytes: many empty ones must not be free. */
const ARGUMENT_COST_BYTES = 4;

/** The same vector if it takes at most `max_bytes`; otherwise its beginning, of whole characters. */
function beginningOf(command: [string, ...string[]], max_bytes: number): [string, ...string[]] {
  let room = max_bytes;
  for (const [index, argument] of command.entries()) {
    // A character takes three bytes at most: what is longer than that in characters need not be measured.
    const bytes = argument.length > room ? argument.length : Buffer.byteLength(argument);
    if (bytes + ARGUMENT_COST_BYTES <= room) {
      room -= bytes + ARGUMENT_COST_BYTES;
      continue;
    }
    const kept = command.slice(0, index);
    const part = firstBytes(argument, Math.max(0, room - ARGUMENT_COST_BYTES));
    return (part === '' && index > 0 ? kept : [...kept, part]) as [string, ...string[]];
  }
  return command;
}

/** As many whole characters as take at most `max_bytes`, in memory of their own. */
function firstBytes(text: string, max_bytes: number): string {
  let part = text.slice(0, max_bytes);
  while (Buffer.byteLength(part) > max_bytes) part = part.slice(0, -1);
  return Buffer.from(part)
    .toString()
    .replace(/\ufffd$/, '');
}

/** An event of the present run, which stays in the record's `unsent` until it is stored. */
export function unsentEvent(
  { mark, restart_count }: ProcessRecord,
  what: 'started' | 'ended',
  event: ProcessEvent,
): UnsentEvent {
  return { key: `${mark}.${restart_count}.${what}`, event };
}

/** The process as the API gives it, without its usage. */
export function viewOf(record: ProcessRecord, state: ProcessState): Omit<ProcessView, 'resource_usage'> {
  const { process_id, request, command, cwd, created_at_ms, run, end, restart_count } = record;
  const started_at_ms = run?.started_at_ms ?? created_at_ms;
  return {
    process_id,
    name: request.name ?? null,
    pid: run?.pid ?? 0,
    state,
    command,
    command_truncated: record.is_command_cut ?? false,
    cwd,
    user: run?.user ?? request.user ?? null,
    exit_code: end?.exit_code ?? null,
    signal: end?.signal ?? null,
    timed_out: end?.timed_out ?? false,
    started_at: timestamp(started_at_ms),
    exited_at: end ? timestamp(end.exited_at_ms) : null,
    duration_ms: end ? (end.duration_ms ?? Math.max(0, end.exited_at_ms - started_at_ms)) : null,
    restart_count,
    ready: run?.is_ready ?? null,
  };
}
