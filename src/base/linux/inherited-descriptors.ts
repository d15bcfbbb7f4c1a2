import { closeSync, readdirSync, readFileSync } from 'node:fs';

// A program's first lines use this file, and nobody else does: what they share with the rest is bundled with the rest.

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
