import { closeSync, readdirSync, readFileSync } from 'node:fs';

/** With a limit of at least this, open descriptors are not counted. */
const PLENTY = 1024;
/** The share of the limit that is reserved for files, children and deliveries. */
const RESERVE = 1 / 4;

/** The number of descriptors that this process may open; infinite if the platform does not say. */
export function descriptorLimit(): number {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return Number(limit ?? Number.POSITIVE_INFINITY);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Whether so few descriptors are free that idle connections must be closed. `limit` is `descriptorLimit()`. */
export function areDescriptorsShort(limit: number): boolean {
  if (limit >= PLENTY) return false;
  try {
    return limit - readdirSync('/proc/self/fd').length < limit * RESERVE;
  } catch {
    return true; // No descriptor is left to read the folder with.
  }
}

/** `O_CLOEXEC`, as fdinfo shows it. */
const CLOSED_ON_EXEC = 0o2000000;

/**
 * Closes what this process's parent left open for its children, except for the standard streams and what one of `named`
 * (arguments, the environment) names, such as `/dev/fd/63`. For the beginning of a program: its own descriptors are not
 * passed on, so that one which is was inherited. Source: proc_pid_fdinfo(5).
 */
export function closeInherited(named: (string | undefined)[]): void {
  const kept = new Set(
    named.flatMap((text) => [...(text ?? '').matchAll(/\/fd\/(\d+)/g)].map(([, fd]) => fd)),
  );
  for (const name of descriptorNames()) {
    const fd = Number(name);
    if (fd > 2 && !kept.has(name) && !isClosedOnExec(fd)) closeSync(fd);
  }
}

function descriptorNames(): string[] {
  try {
    return readdirSync('/proc/self/fd');
  } catch {
    return []; // The platform does not say.
  }
}

/** Also true for one that is closed already, such as that of the folder's listing. */
function isClosedOnExec(fd: number): boolean {
  try {
    const flags = /^flags:\s+([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
    return flags === undefined || (Number.parseInt(flags, 8) & CLOSED_ON_EXEC) !== 0;
  } catch {
    return true;
  }
}
