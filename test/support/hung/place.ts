import { FILE_CALL_TIMEOUT_MS, FILE_SYNC_TIMEOUT_MS } from '../../../src/contract/defaults.ts';
import { type Answer, ask, type Question } from '../../faults/support/ask.ts';
import type { Consumer } from '../consumer.ts';
import type { HungMount } from '../hung-mount.ts';
import type { ServedFile } from '../hung-mount-program.ts';
import type { Launch, SandboxdProgram } from '../sandboxd-program.ts';

/** As long as a request at a file system that hangs may take: half of it is the limit, half for a busy machine. */
export const PATIENCE_MS = 2 * FILE_CALL_TIMEOUT_MS;

/** Requests at once, unless said otherwise: more than a pool of libuv has threads. */
const AT_ONCE = 6;

/** What is there before the daemon starts. */
export interface Stage {
  /** A file system that will hang. */
  mount: HungMount;
  /** A folder that does not hang. */
  folder: string;
}

/** A daemon beside a file system that hangs. */
export interface Scene extends Stage {
  daemon: SandboxdProgram;
  consumer: Consumer;
  /** Requests at once. */
  at_once?: number;
}

/** A place at which a file system hangs. */
export interface Place {
  name: string;
  /** Files of the mount, beside those that all places have. */
  files?: Record<string, ServedFile>;
  /** It hangs before the daemon starts; otherwise after `prepare`. */
  hangs_at_start?: boolean;
  /** How the daemon is started. */
  launch?: (stage: Stage) => Launch & { args?: string[] };
  /** While the file system still answers. */
  prepare?: (scene: Scene) => Promise<unknown>;
  /** What asks the file system once it hangs. */
  touch?: (scene: Scene) => Promise<Answer>[];
  /** Statuses that `touch` may be answered with: 503, unless something else is right. */
  answers?: number[];
  /** Exit codes after SIGTERM: 0, unless a main command decides. */
  exit_codes?: number[];
  /** The account of processes and files: without it none of them goes on. */
  is_account?: boolean;
  /** The daemon starts only once the file system answers again: its operator has put it there. */
  is_start?: boolean;
}

/** Files that each mount has. */
export const FILES: Record<string, ServedFile> = {
  file: { text: 'content', mode: 0o644 },
  program: { text: '#!/bin/sh\nexit 3\n', mode: 0o755 },
  'dir/file': { text: 'content', mode: 0o644 },
  'dir/sub/file': { text: 'content', mode: 0o644 },
};

/** A request with the control token. */
export function call(
  { daemon }: Pick<Scene, 'daemon'>,
  method: string,
  path: string,
  question: Omit<Question, 'body'> & { body?: unknown } = {},
): Promise<Answer> {
  const { body, headers, ...rest } = question;
  const is_json = body !== undefined && typeof body !== 'string' && !Buffer.isBuffer(body);
  return ask(`${daemon.url}/api/v1${path}`, {
    ...{ method, within_ms: PATIENCE_MS, ...rest },
    ...(body === undefined ? {} : { body: is_json ? JSON.stringify(body) : (body as string) }),
    headers: {
      authorization: `Bearer ${daemon.token}`,
      ...(is_json ? { 'content-type': 'application/json' } : {}),
      ...headers,
    },
  });
}

/** The same request several times at once, on connections of their own. */
export function atOnce(
  scene: Scene,
  method: string,
  path: string | ((n: number) => string),
  body?: unknown,
): Promise<Answer>[] {
  // What may have bytes on their way to a disk has longer.
  const within_ms = PATIENCE_MS + (method === 'GET' ? 0 : FILE_SYNC_TIMEOUT_MS);
  const question = { within_ms, ...(body === undefined ? {} : { body }) };
  return Array.from({ length: scene.at_once ?? AT_ONCE }, (_, n) =>
    call(scene, method, typeof path === 'string' ? path : path(n), question),
  );
}

/** `path=` as a query has it. */
export function at(path: string): string {
  return `path=${encodeURIComponent(path)}`;
}

/** `data` of an answer. */
export function dataOf({ json }: Answer): Record<string, unknown> {
  return (json?.data ?? {}) as Record<string, unknown>;
}
