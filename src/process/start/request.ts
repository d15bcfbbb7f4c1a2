import { invalidField } from '../../contract/errors.ts';
import type { ProcessRequest, PtySize, ReadyProbe, RestartOptions } from '../../contract/processes.ts';
import { RESTART_POLICIES } from '../../contract/processes.ts';

const PROCESS_ID = /^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/;
const FIELDS = [
  'command',
  'shell',
  'process_id',
  'cwd',
  'env',
  'user',
  'name',
  'stdin',
  'timeout_ms',
  'restart',
  'pty',
  'ready',
];
/** The largest terminal that its kernel structure holds. */
const TERMINAL_SIDE_MAX = 65_535;

/**
 * Checks the body of `POST /processes`. Throws `invalid_request`, which names the field, for unknown keys and values
 * of the wrong shape. Whether the command can be started shows only when it is.
 * Source: contract section 4, row POST `/processes`.
 */
export function parseProcessRequest(body: unknown): ProcessRequest {
  const request = object(body, 'body');
  known(request, FIELDS, '');
  if ((request.command === undefined) === (request.shell === undefined)) {
    throw invalidField('command', 'exactly one of command and shell is required');
  }
  if (request.command !== undefined) command(request.command);
  for (const field of ['shell', 'cwd', 'user', 'name'] as const) text(request, field);
  if (request.shell === '') throw invalidField('shell', 'must not be empty');
  if (request.cwd === '') throw invalidField('cwd', 'must not be empty');
  if (request.process_id !== undefined) checkProcessId(request.process_id);
  if (request.env !== undefined) checkEnvironment(request.env, 'env');
  if (request.stdin !== undefined && request.stdin !== 'pipe' && request.stdin !== 'ignore') {
    throw invalidField('stdin', 'must be pipe or ignore');
  }
  whole(request, 'timeout_ms', 1);
  if (request.restart !== undefined) restart(request.restart);
  if (request.pty !== undefined) checkPtySize(request.pty, 'pty');
  if (request.ready !== undefined) ready(request.ready);
  return request as unknown as ProcessRequest;
}

/** Throws `invalid_request` unless `value` is a valid `process_id`. */
export function checkProcessId(value: unknown): asserts value is string {
  if (typeof value !== 'string' || !PROCESS_ID.test(value)) {
    throw invalidField('process_id', 'must be 1 to 128 of A-Z a-z 0-9 _ - . : and not . or ..');
  }
}

/** Throws `invalid_request` for `field` unless `value` is a terminal size. */
export function checkPtySize(value: unknown, field: string): asserts value is PtySize {
  const size = object(value, field);
  known(size, ['cols', 'rows'], `${field}.`);
  for (const side of ['cols', 'rows']) {
    const cells = size[side];
    if (!isWhole(cells, 1, TERMINAL_SIDE_MAX)) {
      throw invalidField(`${field}.${side}`, `must be an integer from 1 to ${TERMINAL_SIDE_MAX}`);
    }
  }
}

/** Throws `invalid_request` for `field` unless `value` maps names of variables to strings. */
export function checkEnvironment(value: unknown, field: string): asserts value is Record<string, string> {
  for (const [name, entry] of Object.entries(object(value, field))) {
    if (name === '' || name.includes('=') || name.includes('\0')) {
      throw invalidField(field, 'a name must not be empty or contain = or NUL');
    }
    if (typeof entry !== 'string' || entry.includes('\0')) {
      throw invalidField(`${field}.${name}`, 'must be a string without NUL');
    }
  }
}

/** A text that is equal for equal requests: the body without `process_id`, with its keys sorted. */
export function requestFingerprint(request: ProcessRequest): string {
  const { process_id: _, ...rest } = request;
  return JSON.stringify(sorted(rest));
}

/** The argument vector that is run and shown: `shell` becomes `/bin/sh -c TEXT`. */
export function commandOf(request: ProcessRequest): [string, ...string[]] {
  if (request.command) return request.command as [string, ...string[]];
  return ['/bin/sh', '-c', request.shell ?? ''];
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([key, entry]) => [key, sorted(entry)]);
}

function command(value: unknown): void {
  const isArgv = Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === 'string');
  if (!isArgv || value[0] === '') {
    throw invalidField('command', 'must be an array of strings, the first of them the program');
  }
  if (value.some((part) => part.includes('\0'))) throw invalidField('command', 'must not contain NUL');
}

function restart(value: unknown): asserts value is RestartOptions {
  const options = object(value, 'restart');
  known(options, ['policy', 'max_restarts', 'backoff_ms'], 'restart.');
  if (!RESTART_POLICIES.some((policy) => policy === options.policy)) {
    throw invalidField('restart.policy', `must be one of ${RESTART_POLICIES.join(', ')}`);
  }
  whole(options, 'max_restarts', 0, 'restart.');
  whole(options, 'backoff_ms', 0, 'restart.');
}

function ready(value: unknown): asserts value is ReadyProbe {
  const probe = object(value, 'ready');
  known(probe, ['port', 'log'], 'ready.');
  if ((probe.port === undefined) === (probe.log === undefined)) {
    throw invalidField('ready', 'exactly one of port and log is required');
  }
  if (probe.port !== undefined && !isWhole(probe.port, 1, 65_535)) {
    throw invalidField('ready.port', 'must be a port from 1 to 65535');
  }
  if (probe.log !== undefined && (typeof probe.log !== 'string' || probe.log === '')) {
    throw invalidField('ready.log', 'must be a string that is not empty');
  }
}

function object(value: unknown, field: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidField(field, 'must be an object');
  }
  return value as Record<string, unknown>;
}

function known(value: Record<string, unknown>, fields: string[], prefix: string): void {
  for (const key of Object.keys(value)) {
    if (!fields.includes(key)) throw invalidField(prefix + key, 'unknown field');
  }
}

function text(value: Record<string, unknown>, field: string): void {
  const entry = value[field];
  if (entry === undefined) return;
  if (typeof entry !== 'string' || entry.includes('\0')) {
    throw invalidField(field, 'must be a string without NUL');
  }
}

function whole(value: Record<string, unknown>, field: string, min: number, prefix = ''): void {
  const entry = value[field];
  if (entry !== undefined && !isWhole(entry, min, Number.MAX_SAFE_INTEGER)) {
    throw invalidField(prefix + field, `must be an integer of at least ${min}`);
  }
}

function isWhole(value: unknown, min: number, max: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}
