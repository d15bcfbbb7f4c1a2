import { readFileSync } from 'node:fs';

let known: number | null = null;

/** What the kernel takes from the modes of new files. Read once: a program sets it at its start. */
export function umask(): number {
  if (known !== null) return known;
  const [, octal = '777'] = /^Umask:\s+([0-7]+)$/m.exec(readFileSync('/proc/self/status', 'latin1')) ?? [];
  known = Number.parseInt(octal, 8);
  return known;
}
