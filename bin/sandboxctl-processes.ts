import { type Command, Option } from 'commander';
import type { ProcessRequest } from '../src/contract/processes.ts';
import { OUTPUT_STREAMS } from '../src/contract/words.ts';
import { interruption } from '../src/ctl/command.ts';
import { logs } from '../src/ctl/logs.ts';
import { withProcess } from '../src/ctl/process-id.ts';
import { ps } from '../src/ctl/ps.ts';
import { runExitCode, runProcess } from '../src/ctl/run/run-process.ts';
import { signal } from '../src/ctl/signal.ts';
import { stop } from '../src/ctl/stop.ts';
import { failureLine, integer } from './command-line.ts';
import { type CommandRunner, environmentEntry, RAW, timeout } from './sandboxctl-arguments.ts';

const PROCESS_ID = 'its id, or as much of the beginning as is unique';

/** Defines the commands that run and follow processes. */
export function defineProcessCommands(program: Command, { withDaemon }: CommandRunner): void {
  program
    .command('run')
    .description('run a command in the sandbox as if it ran here')
    .argument('<command...>', 'the command and its arguments, after --')
    .option('--name <name>', 'the name shown in events')
    .option('--cwd <dir>', 'working directory')
    .option('--env <name=value>', 'set an environment variable; repeatable', environmentEntry)
    .option(
      '--timeout <duration>',
      'end the command after this time: 500ms, 30s, 5m, 1h; seconds without a unit',
      timeout,
    )
    .option('--user <name>', 'user to run as')
    .option('-i, --interactive', 'forward stdin to the command')
    .option('-t, --terminal', 'allocate a terminal')
    .configureOutput({
      outputError: (text, write) => write(failureLine('sandboxctl', missingSeparator(text))),
    })
    .addHelpText(
      'after',
      "\nExit code: that of the command; 128 + the signal's number if a signal ended it; 125 if run failed itself; 126 if the command cannot be started; 127 if it is not found",
    )
    .action(
      (
        command: string[],
        options: {
          name?: string;
          cwd?: string;
          env?: Record<string, string>;
          timeout?: number;
          user?: string;
          interactive?: true;
          terminal?: true;
        },
      ) =>
        withDaemon(
          (context) => {
            const {
              name,
              cwd,
              env,
              timeout: timeout_ms,
              user,
              interactive = false,
              terminal = false,
            } = options;
            const { stdin, stdout: screen } = process;
            const request = { command, name, cwd, env, timeout_ms, user } as ProcessRequest;
            return runProcess(context, { request, interactive, terminal, stdin, screen });
          },
          { exitCodeOf: runExitCode },
        ),
    );

  program
    .command('ps')
    .description('list processes, running and ended')
    .action(() => withDaemon(ps));

  program
    .command('logs')
    .description('print the output of a process')
    .argument('<process_id>', PROCESS_ID)
    .option('-f, --follow', 'continue until the process ends')
    .addOption(
      new Option('--stream <stream>', 'only this stream').choices([...OUTPUT_STREAMS, 'all']).default('all'),
    )
    .option('--tail <lines>', 'start this many lines before the end', integer(0))
    .option(...RAW)
    .action(
      (
        process_id: string,
        options: { follow?: true; stream: 'stdout' | 'stderr' | 'all'; tail?: number; raw?: boolean },
      ) =>
        withDaemon((context) => {
          const { follow = false, stream, tail: tail_lines, raw: is_raw = false } = options;
          const interrupted = interruption();
          return withProcess(context, process_id, (id) =>
            logs(context, id, { follow, stream, tail_lines, is_raw }, interrupted),
          );
        }),
    );

  program
    .command('signal')
    .description('send a signal to a process and its group')
    .argument('<process_id>', PROCESS_ID)
    .argument('<signal>', 'name of the signal, such as SIGHUP')
    .action((process_id: string, name: string) =>
      withDaemon((context) => withProcess(context, process_id, (id) => signal(context, id, name))),
    );

  program
    .command('stop')
    .description('end a process and everything it started')
    .argument('<process_id>', PROCESS_ID)
    .option('--grace-ms <ms>', 'time from SIGTERM to SIGKILL', integer(0))
    .action((process_id: string, { graceMs }: { graceMs?: number }) =>
      withDaemon((context) => withProcess(context, process_id, (id) => stop(context, id, graceMs))),
    );
}

/** Says what most probably was meant where an option is unknown that belongs to the command to run. */
function missingSeparator(error: string): string {
  if (!error.includes('unknown option') || process.argv.includes('--')) return error;
  const words = process.argv.slice(process.argv.indexOf('run') + 1);
  return `${error.trim()}; put -- before the command: sandboxctl run -- ${words.join(' ')}`;
}
