const WORDS: Record<string, string> = {
  EACCES: 'permission denied',
  EADDRINUSE: 'address already in use',
  EADDRNOTAVAIL: 'no such local address',
  EAI_AGAIN: 'the name cannot be resolved right now',
  EBUSY: 'in use',
  ECONNABORTED: 'connection aborted',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTDOWN: 'the host is down',
  EHOSTUNREACH: 'no route to the host',
  EISDIR: 'is a directory',
  EMFILE: 'too many open files',
  ENETDOWN: 'the network is down',
  ENETUNREACH: 'no route to the network',
  ENFILE: 'too many open files on this machine',
  ENODATA: 'no such host',
  ENOENT: 'no such file',
  ENOSPC: 'no space left on the device',
  ENOTDIR: 'not a directory',
  ENOTFOUND: 'no such host',
  EPERM: 'not permitted',
  EPIPE: 'connection closed',
  EROFS: 'the file system is read-only',
  ETIMEDOUT: 'connection timed out',
};

/** What a system error's code (errno, or one of name resolution) means, in words for a user; null for any other code. */
export function systemErrorWords(code: string | undefined): string | null {
  return code !== undefined && Object.hasOwn(WORDS, code) ? (WORDS[code] ?? null) : null;
}

/** A system error, and what it may know of where it happened. */
interface SystemError extends Error {
  code?: string;
  address?: string;
  hostname?: string;
  port?: number;
}

/**
 * A system error in one line, such as `connection refused (ECONNREFUSED 127.0.0.1:5432)`; of several addresses that were
 * tried, the first one's. Null for an error that is none of the system.
 */
export function systemErrorText(error: unknown): string | null {
  const first = error instanceof AggregateError ? error.errors[0] : error;
  const { code, address, hostname, port } = (first ?? {}) as SystemError;
  const words = systemErrorWords(code);
  if (words === null) return null;
  const host = address ?? hostname;
  const place = [host?.includes(':') ? `[${host}]` : host, port]
    .filter((part) => part !== undefined)
    .join(':');
  return `${words} (${[code, place].filter(Boolean).join(' ')})`;
}
