import { SandboxdError } from '../../client/error.ts';
import type { FileEntry } from '../../client/files.ts';
import type { Context } from '../context.ts';
import { EXIT, Failure } from '../failure.ts';

/** The account that a command acts as; undefined for the daemon's default. */
export interface AsUser {
  user?: string | undefined;
}

/** The account that a copy acts as, and what interrupts it. */
export interface CopyAs extends AsUser {
  signal: AbortSignal;
}

/** The account that a question is asked as, and what interrupts it, if anything does. */
export type AskAs = AsUser & Partial<CopyAs>;

/** A path in the sandbox, which may be given as `:PATH`. Throws a usage failure for one that is not absolute. */
export function sandboxPath(text: string): string {
  const path = text.startsWith(':') ? text.slice(1) : text;
  if (path.startsWith('/')) return path;
  throw new Failure(EXIT.usage, `the path in the sandbox must be absolute: ${JSON.stringify(text)}`);
}

/** What is at a path of the sandbox; null for nothing. */
export async function sandboxStat(
  { sandbox }: Context,
  path: string,
  { user, ...interrupted }: AskAs,
): Promise<FileEntry | null> {
  try {
    return await sandbox.GET('/api/v1/files/stat', { query: { path, user }, ...interrupted });
  } catch (error) {
    if (error instanceof SandboxdError && error.code === 'not_found') return null;
    throw error;
  }
}

/** All entries of a directory of the sandbox, page by page. */
export async function* sandboxEntries(
  { sandbox }: Context,
  path: string,
  depth: number,
  as: AsUser,
): AsyncGenerator<FileEntry[], void> {
  let cursor: string | undefined;
  do {
    const query = { path, depth, cursor, ...as };
    const page = await sandbox.GET('/api/v1/files/list', { query });
    yield page.entries;
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
}
