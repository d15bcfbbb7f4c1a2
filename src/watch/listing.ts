import { readdirSync } from 'node:fs';
import { nameOf, systemPath } from './name.ts';

/** The names in a directory in internal form; null where it cannot be listed. */
export function listNames(path: string): string[] | null {
  try {
    const names = readdirSync(systemPath(path));
    if (!names.some((name) => name.includes('\ufffd'))) return names;
    return readdirSync(systemPath(path), { encoding: 'buffer' }).map(nameOf);
  } catch {
    return null;
  }
}
