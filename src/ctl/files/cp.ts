import { stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import type { Context } from '../context.ts';
import { EXIT, type ExitCode, Failure, reason } from '../failure.ts';
import { insideIfDirectory } from './change.ts';
import { downloadFile, downloadTree, printFile } from './download.ts';
import { type AsUser, sandboxPath, sandboxStat } from './sandbox-files.ts';
import { uploadFile, uploadStream, uploadTree } from './upload.ts';

/** How files are copied. */
export interface CpOptions extends AsUser {
  /** Whether directories are copied too. */
  recursive: boolean;
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
  const to_sandbox = destination.startsWith(':');
  if (
    sources.length > 1 &&
    !destination.endsWith('/') &&
    !(await isDirectory(context, destination, options))
  ) {
    throw new Failure(EXIT.usage, `${destination} is no directory: several files cannot be copied to it`);
  }
  for (const source of sources) {
    const from_sandbox = source.startsWith(':');
    if (from_sandbox && to_sandbox)
      await within(context, sandboxPath(source), sandboxPath(destination), options);
    else if (to_sandbox) await up(context, source, sandboxPath(destination), options);
    else if (from_sandbox) await down(context, sandboxPath(source), destination, options);
    else
      throw new Failure(
        EXIT.usage,
        'one side must be in the sandbox, as in cp FILE :/PATH or cp :/PATH FILE',
      );
  }
  return EXIT.ok;
}

async function up(context: Context, from: string, to: string, options: CpOptions): Promise<void> {
  const { recursive, stdin, user } = options;
  const as = { user };
  if (from === '-') return uploadStream(context, stdin, to, as);
  const found = await localStat(from);
  if (!found) throw new Failure(EXIT.failed, `${from} is not there`);
  if (!found.isDirectory()) {
    if (!found.isFile()) throw new Failure(EXIT.failed, `${from} is neither a file nor a directory`);
    return uploadFile(context, from, await insideIfDirectory(context, to, resolve(from), as), as);
  }
  checkRecursive(from, recursive);
  const is_there = (await sandboxStat(context, to, as)) !== null;
  const target = is_there && !copiesContents(from) ? join(to, basename(resolve(from))) : to;
  await uploadTree(context, from, target, as);
}

async function down(context: Context, from: string, to: string, options: CpOptions): Promise<void> {
  const { recursive, user } = options;
  const as = { user };
  if (to === '-') return printFile(context, from, as);
  const entry = await sandboxStat(context, from, as);
  if (!entry) throw new Failure(EXIT.failed, `:${from} is not there`);
  const found = await localStat(to);
  const name = basename(join(from, '.'));
  if (entry.type !== 'dir') {
    const target = found?.isDirectory() || to.endsWith('/') ? join(to, name) : to;
    return downloadFile(context, from, target, entry.mode, as);
  }
  checkRecursive(`:${from}`, recursive);
  const target = found && !copiesContents(from) ? join(to, name) : to;
  await downloadTree(context, from, resolve(target), as);
}

async function within(
  context: Context,
  from: string,
  to: string,
  { recursive, user }: CpOptions,
): Promise<void> {
  const entry = await sandboxStat(context, from, { user });
  if (!entry) throw new Failure(EXIT.failed, `:${from} is not there`);
  if (entry.type === 'dir') checkRecursive(`:${from}`, recursive);
  const destination = await insideIfDirectory(context, to, from, { user });
  await context.client.call('POST', '/files/copy', {
    query: { user },
    body: JSON.stringify({ source: from, destination, overwrite: entry.type !== 'dir' }),
    headers: { 'content-type': 'application/json' },
    silence_timeout_ms: 0,
  });
}

function copiesContents(path: string): boolean {
  return /(^|\/)\.\/?$/.test(path);
}

function checkRecursive(shown: string, recursive: boolean): void {
  if (!recursive) throw new Failure(EXIT.usage, `${shown} is a directory: copy it with -r`);
}

async function isDirectory(context: Context, path: string, { user }: CpOptions): Promise<boolean> {
  if (path.startsWith(':')) return (await sandboxStat(context, sandboxPath(path), { user }))?.type === 'dir';
  return (await localStat(path))?.isDirectory() ?? false;
}

async function localStat(path: string) {
  return stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new Failure(EXIT.failed, `${path}: ${reason(error)}`);
  });
}
