import type { Command } from 'commander';
import { interruption } from '../src/ctl/command.ts';
import { EXIT } from '../src/ctl/failure.ts';
import { mkdir, mv, rm } from '../src/ctl/files/change.ts';
import { ls, statPath } from '../src/ctl/files/ls.ts';
import { sandboxPath } from '../src/ctl/files/sandbox-files.ts';
import { integer } from './command-line.ts';
import { type CommandRunner, RAW } from './sandboxctl-arguments.ts';

const USER: [flags: string, description: string] = ['--user <name>', 'account to act as'];
const PATH = 'an absolute path in the sandbox';

/** Defines the commands that read and change the sandbox's files. */
export function defineFileCommands(program: Command, { withDaemon }: CommandRunner): void {
  program
    .command('ls')
    .description('list a directory of the sandbox')
    .argument('<path>', PATH)
    .option('-l, --long', 'mode, owner, size and time of each')
    .option('--depth <levels>', 'list so many levels', integer(1, 32))
    .option(...USER)
    .action(
      (path: string, { long = false, depth = 1, user }: { long?: boolean; depth?: number; user?: string }) =>
        withDaemon((context) => ls(context, path, { long, depth, user })),
    );

  program
    .command('cat')
    .description('print files of the sandbox')
    .argument('<path...>', PATH)
    .option(...RAW)
    .option(...USER)
    .action((paths: string[], { raw: is_raw = false, user }: { raw?: boolean; user?: string }) =>
      withDaemon(async (context) => {
        const { printFile } = await import('../src/ctl/files/download.ts');
        for (const path of paths) await printFile(context, sandboxPath(path), { user }, is_raw);
        return EXIT.ok;
      }),
    );

  program
    .command('cp')
    .description('copy files between here and the sandbox, whose paths begin with :')
    .argument('<path...>', 'sources and the destination; - is stdin or stdout')
    .option('-r, --recursive', 'copy directories')
    .option(
      '-p, --preserve',
      'of files that come from the sandbox, keep setuid and setgid, and links that lead out',
    )
    .option(...USER)
    .addHelpText(
      'after',
      '\nInto a directory that is there, otherwise under the new name. DIR/. copies what is in DIR. A destination that ends with / is a directory.\nOf a directory, what cannot be copied is named, and the rest copied: exit 1.',
    )
    .action(
      async (
        paths: string[],
        {
          recursive = false,
          preserve = false,
          user,
        }: { recursive?: boolean; preserve?: boolean; user?: string },
        command: Command,
      ) => {
        if (paths.length < 2)
          command.error("error: missing required argument 'destination'", { exitCode: EXIT.usage });
        const signal = interruption();
        await withDaemon(async (context) => {
          const { cp } = await import('../src/ctl/files/cp.ts');
          return cp(context, paths, { recursive, preserve, user, stdin: process.stdin, signal });
        });
        // What was begun is gone by now: ends as the signal ends any program.
        if (signal.aborted) process.kill(process.pid, signal.reason);
      },
    );

  program
    .command('mv')
    .description('move a file or directory of the sandbox')
    .argument('<source>', PATH)
    .argument('<destination>', 'its new path, or a directory to move it into')
    .option('-f, --force', 'replace a file that is there')
    .option(...USER)
    .action(
      (source: string, destination: string, { force = false, user }: { force?: boolean; user?: string }) =>
        withDaemon((context) => mv(context, source, destination, { force, user })),
    );

  program
    .command('rm')
    .description('remove files and directories of the sandbox')
    .argument('<path...>', PATH)
    .option('-r, --recursive', 'remove directories with what is in them')
    .option('-f, --force', 'take what is not there as removed')
    .option(...USER)
    .action(
      (
        paths: string[],
        { recursive = false, force = false, user }: { recursive?: boolean; force?: boolean; user?: string },
      ) => withDaemon((context) => rm(context, paths, { recursive, force, user })),
    );

  program
    .command('mkdir')
    .description('make directories in the sandbox')
    .argument('<path...>', PATH)
    .option('-p, --parents', 'also those above; one that is there is no error')
    .option('--mode <octal>', 'its permissions, such as 0700')
    .option(...USER)
    .action(
      (
        paths: string[],
        { parents = false, mode, user }: { parents?: boolean; mode?: string; user?: string },
      ) => withDaemon((context) => mkdir(context, paths, { parents, mode, user })),
    );

  program
    .command('stat')
    .description('describe a path of the sandbox')
    .argument('<path>', PATH)
    .option(...USER)
    .action((path: string, as: { user?: string }) => withDaemon((context) => statPath(context, path, as)));

  program
    .command('watch')
    .description('print the changes in directories of the sandbox')
    .argument('<path...>', PATH)
    .option('-r, --recursive', 'also in the directories below')
    .option(...USER)
    .action((paths: string[], { recursive = false, user }: { recursive?: boolean; user?: string }) =>
      withDaemon(async (context) => {
        const { watch } = await import('../src/ctl/files/watch.ts');
        return watch(context, paths, { recursive, user }, interruption());
      }),
    );
}
