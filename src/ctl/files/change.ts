import { SandboxdError } from '../../client/error.ts';
import type { Context } from '../context.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { type AskAs, type AsUser, sandboxPath, sandboxStat } from './sandbox-files.ts';

const WITHOUT_LIMIT = { timeout_ms: 0 };

/** Moves a path of the sandbox; into a directory that is there, as `mv` does. Contract section 4, `POST /files/move`. */
export async function mv(
  context: Context,
  source: string,
  destination: string,
  { force: overwrite, ...as }: AsUser & { force: boolean },
): Promise<ExitCode> {
  const from = sandboxPath(source);
  const { path: to } = await insideIfDirectory(context, sandboxPath(destination), from, as);
  const body = { source: from, destination: to, overwrite };
  await context.sandbox.POST('/api/v1/files/move', { query: as, body, ...WITHOUT_LIMIT });
  return EXIT.ok;
}

/** Removes paths of the sandbox. Contract section 4, `DELETE /files`. */
export async function rm(
  context: Context,
  paths: readonly string[],
  { recursive, force, ...as }: AsUser & { recursive: boolean; force: boolean },
): Promise<ExitCode> {
  for (const path of paths.map(sandboxPath)) {
    const query = { path, recursive, ...as };
    await context.sandbox.DELETE('/api/v1/files', { query, ...WITHOUT_LIMIT }).catch((error: unknown) => {
      if (!(force && error instanceof SandboxdError && error.code === 'not_found')) throw error;
    });
  }
  return EXIT.ok;
}

/** Makes directories in the sandbox. Contract section 4, `POST /files` with `mkdir`. */
export async function mkdir(
  context: Context,
  paths: readonly string[],
  { parents, mode, ...as }: AsUser & { parents: boolean; mode?: string | undefined },
): Promise<ExitCode> {
  for (const path of paths.map(sandboxPath)) {
    const query = { path, mkdir: true, recursive: parents, mode, ...as };
    await context.sandbox.ask('POST', '/api/v1/files', { query });
  }
  return EXIT.ok;
}

/** Where something gets that is copied or moved. */
interface PlaceInSandbox {
  path: string;
  /** Whether something is there already; null where nobody has asked. */
  is_there: boolean | null;
}

/** The place that something gets that is put at `to`: inside it where it is a directory, or ends with a slash. */
export async function insideIfDirectory(
  context: Context,
  to: string,
  from: string,
  as: AskAs,
): Promise<PlaceInSandbox> {
  const name = from.split('/').findLast((each) => each !== '' && each !== '.') ?? '';
  const found = to.endsWith('/') ? null : await sandboxStat(context, to, as);
  if (found?.type !== 'dir' && !to.endsWith('/')) return { path: to, is_there: found !== null };
  return { path: `${to.replace(/\/+$/, '')}/${name}`, is_there: null };
}
