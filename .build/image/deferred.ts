import { createRequire } from 'node:module';
import type { Members } from './loader.ts';

/** Modules of Node that are slow to load and not used during the start. */
const DEFERRED = [
  ...['child_process', 'crypto', 'dns', 'dns/promises', 'fs/promises', 'http2', 'https'],
  ...['os', 'timers/promises', 'tty', 'v8', 'worker_threads', 'zlib'],
];

/** The members of the deferred modules in this Node, which is the one that the image holds. */
export function deferredMembers(): Members {
  const native = createRequire(import.meta.url);
  return Object.fromEntries(DEFERRED.map((id) => [id, Object.keys(native(`node:${id}`))]));
}
