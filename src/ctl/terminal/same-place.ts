import { fstatSync } from 'node:fs';

const STDOUT = 1;
const STDERR = 2;

/** Whether this program's stdout and stderr lead to the same place, such as a terminal, where their order is seen. */
export function isSamePlace(): boolean {
  const [out, err] = [fstatSync(STDOUT), fstatSync(STDERR)];
  return out.dev === err.dev && out.ino === err.ino;
}
