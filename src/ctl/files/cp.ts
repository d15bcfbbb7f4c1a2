import { stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { SETS_IDS } from '../../files/archive/tree-copy.ts';
import { SET_IDS } from '../../files/mode.ts';
import type { Context } from '../context.ts';
import { EXIT, type ExitCode, Failure, reason } from '../failure.ts';
import { insideIfDirectory } from './change.ts';
import { downloadFile, downloadTree, printFile } from './download.ts';
import { Losses } from './losses.ts';
import { type CopyAs, sandboxPath, sandboxStat } from './sandbox-files.ts';
import { uploadFile, uploadPipe, uploadStream, uploadTree } from './upload.ts';

/** How files are copied. */
export interface CpOptions extends CopyAs {
  /** Whether directories are copied too. */
  recursive: boolean;
  /** Whether files that come from the sandbox keep setuid and setgid. */
  preserve: boolean;
  /** For `-` as the source. */
  stdin: Readable;
}

/**
 * Copies files between here and the sandbox, whose paths begin with `:`, with the habits of `docker cp`: into a directory
 * that is there, otherwise under the new name; `DIR/.` copies what is in it. `-` is stdin or stdout.
 * Contract section 4, "Files".
 */
export async function cp(context: Context, paths: readonly string[], options: CpOptions): Promise<ExitCode> {
  const sources = paths.slice(0, -1);
  const destination = paths.at(-1) ?? '';
  try {
    return await copyAll(context, sources, destination, options);
  } catch (error) {
    throw options.signal.aborted ? new Failure(EXIT.failed, 'interrupted') : error;
  }
}

async function copyAll(
  context: Context,
  sources: readonly string[],
  destination: string,
  options: CpOptions,
): Promise<ExitCode> {
  if (
    sources.length > 1 &&
    !destination.endsWith('/') &&
    !(await isDirectory(context, destination, options))
  ) {
    throw new Failure(EXIT.usage, `${destination} is no directory: several files cannot be copied to it`);
  }
  const to_sandbox = destination.startsWith(':');
  let exit_code: ExitCode = EXIT.ok;
  for (const source of sources) {
    options.signal.throwIfAborted();
    const from_sandbox = source.startsWith(':');
    if (from_sandbox && to_sandbox)
      await within(context, sandboxPath(source), sandboxPath(destination), options);
    else if (to_sandbox)
      exit_code = worse(exit_code, await up(context, source, sandboxPath(destination), options));
    else if (from_sandbox)
      exit_code = worse(exit_code, await down(context, sandboxPath(source), destination, options));
    else
      throw new Failure(
        EXIT.usage,
        'one side must be in the sandbox, as in cp FILE :/PATH or cp :/PATH FILE',
      );
  }
  return exit_code;
}

/** The exit code of several copies. */
function worse(one: ExitCode, other: ExitCode): ExitCode {
  return one === EXIT.ok ? other : one;
}

async function up(context: Context, from: string, to: string, options: CpOptions): Promise<ExitCode> {
  const { recursive, stdin, user, signal } = options;
  const as = { user, signal };
  if (from === '-') {
    await uploadStream(context, stdin, to, as);
    return EXIT.ok;
  }
  const found = await localStat(from);
  if (!found) throw new Failure(EXIT.failed, `${from} is not there`);
  if (!found.isDirectory()) {
    if (found.isSocket()) throw new Failure(EXIT.failed, `${from} is a socket`);
    const { path, is_there } = await insideIfDirectory(context, to, resolve(from), as);
    if (found.isFIFO()) await uploadPipe(context, from, path, as);
    else {
      const is_new = !(is_there ?? (await sandboxStat(context, path, as)));
      await uploadFile(context, from, path, { ...as, is_new });
    }
    return EXIT.ok;
  }
  checkRecursive(from, recursive);
  const is_there = (await sandboxStat(context, to, as)) !== null;
  const target = is_there && !copiesContents(from) ? join(to, basename(resolve(from))) : to;
  return uploadTree(context, from, target, as);
}

async function down(context: Context, from: string, to: string, options: CpOptions): Promise<ExitCode> {
  const { recursive, preserve, user, signal } = options;
  const as = { user, signal };
  if (to === '-') {
    await printFile(context, from, as, false);
    return EXIT.ok;
  }
  const entry = await sandboxStat(context, from, as);
  if (!entry) throw new Failure(EXIT.failed, `:${from} is not there`);
  const found = await localStat(to);
  const name = basename(join(from, '.'));
  if (entry.type !== 'dir') {
    const target = found?.isDirectory() || to.endsWith('/') ? join(to, name) : to;
    const mode = Number.parseInt(entry.mode, 8);
    const kept = preserve ? mode : mode & ~SET_IDS;
    const losses = new Losses(`:${from}`);
    if (kept !== mode) losses.add({ path: '', what: SETS_IDS, is_failure: false });
    await downloadFile(context, from, target, kept, as);
    return losses.tell(context.err);
  }
  checkRecursive(`:${from}`, recursive);
  const target = found && !copiesContents(from) ? join(to, name) : to;
  return downloadTree(context, from, resolve(target), { ...as, preserve });
}

async function within(
  context: Context,
  from: string,
  to: string,
  { recursive, user, signal }: CpOptions,
): Promise<void> {
  const as = { user, signal };
  const entry = await sandboxStat(context, from, as);
  if (!entry) throw new Failure(EXIT.failed, `:${from} is not there`);
  if (entry.type === 'dir') checkRecursive(`:${from}`, recursive);
  const { path: destination } = await insideIfDirectory(context, to, from, as);
  await context.sandbox.POST('/api/v1/files/copy', {
    query: { user },
    body: { source: from, destination, overwrite: entry.type !== 'dir' },
    timeout_ms: 0,
    signal,
  });
}

function copiesContents(path: string): boolean {
  return /(^|\/)\.\/?$/.test(path);
}

function checkRecursive(shown: string, recursive: boolean): void {
  if (!recursive) throw new Failure(EXIT.usage, `${shown} is a directory: copy it with -r`);
}

async function isDirectory(context: Context, path: string, { user, signal }: CpOptions): Promise<boolean> {
  if (path.startsWith(':'))
    return (await sandboxStat(context, sandboxPath(path), { user, signal }))?.type === 'dir';
  return (await localStat(path))?.isDirectory() ?? false;
}

async function localStat(path: string) {
  return stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new Failure(EXIT.failed, `${path}: ${reason(error)}`);
  });
}
