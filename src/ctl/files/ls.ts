import type { FileEntry } from '../../client/files.ts';
import { FILE_ROWS } from '../api/row-kinds.ts';
import { soundRows, tellLeftOut } from '../api/sound-rows.ts';
import type { Context } from '../context.ts';
import { EXIT, type ExitCode, Failure } from '../failure.ts';
import type { Output } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { moment } from '../terminal/quantity.ts';
import { table } from '../terminal/table.ts';
import { type AsUser, sandboxEntries, sandboxPath, sandboxStat } from './sandbox-files.ts';

/** What is listed, and how. */
export interface LsOptions extends AsUser {
  /** A line with mode, owner, size and time for each. */
  long: boolean;
  depth: number;
}

/** Lists a directory of the sandbox, or one file. Contract section 4, `GET /files/list`. */
export async function ls(
  context: Context,
  given: string,
  { long, depth, ...as }: LsOptions,
): Promise<ExitCode> {
  const path = sandboxPath(given);
  const entry = await sandboxStat(context, path, as);
  if (!entry) throw new Failure(EXIT.failed, `${path} is not there`);
  if (entry.type !== 'dir') {
    return print(context, [entry], long, (each) => each.path);
  }
  const prefix = path.endsWith('/') ? path.length : path.length + 1;
  let exit_code: ExitCode = EXIT.ok;
  for await (const entries of sandboxEntries(context, path, depth, as)) {
    const printed = await print(context, entries, long, (each) => each.path.slice(prefix));
    if (printed !== EXIT.ok) exit_code = printed;
  }
  return exit_code;
}

/** Describes one path of the sandbox. Contract section 4, `GET /files/stat`. */
export async function statPath(context: Context, given: string, as: AsUser): Promise<ExitCode> {
  const path = sandboxPath(given);
  const entry = await sandboxStat(context, path, as);
  if (!entry) throw new Failure(EXIT.failed, `${path} is not there`);
  if (context.json) {
    await context.out.line(JSON.stringify(entry));
    return EXIT.ok;
  }
  for (const [name, value] of Object.entries(entry)) {
    if (value !== null) await context.out.line(`${name.padEnd(12)} ${printable(String(value))}`);
  }
  return EXIT.ok;
}

async function print(
  { out, err, json }: Context,
  answered: readonly FileEntry[],
  long: boolean,
  nameOf: (entry: FileEntry) => string,
): Promise<ExitCode> {
  if (json) {
    for (const entry of answered) await out.line(JSON.stringify(entry));
    return EXIT.ok;
  }
  const { rows, left_out } = await soundRows<FileEntry>(answered, FILE_ROWS);
  if (long && rows.length > 0) await out.lines(longLines(rows, out, nameOf));
  else if (rows.length > 0) await out.write(`${rows.map((each) => printable(nameOf(each))).join('\n')}\n`);
  return tellLeftOut(err, left_out);
}

const TYPES = { file: '-', dir: 'd', symlink: 'l', other: '?' } as const;

function longLines(entries: FileEntry[], out: Output, nameOf: (entry: FileEntry) => string): string[] {
  return table(
    [
      {
        title: 'MODE',
        cell: ({ type, is_link, mode }) => `${is_link ? 'l' : (TYPES[type] ?? '?')}${printable(mode)}`,
      },
      { title: 'USER', cell: ({ user }) => printable(user), spare: 2 },
      { title: 'GROUP', cell: ({ group }) => printable(group), spare: 3 },
      { title: 'SIZE', cell: ({ size }) => String(size) },
      { title: 'MODIFIED', cell: ({ mod_time }) => moment(mod_time), spare: 1 },
      {
        title: 'NAME',
        cell: (entry) =>
          printable(nameOf(entry) + (entry.link_target === null ? '' : ` -> ${entry.link_target}`)),
      },
    ],
    entries,
    out.columns,
  );
}
