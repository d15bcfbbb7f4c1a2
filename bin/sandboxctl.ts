#!/usr/bin/env -S node --disable-sigusr1
import { Argument, Command, CommanderError, type Option } from 'commander';
import { systemClock } from '../src/base/clock.ts';
import { VERSION } from '../src/base/version.ts';
import { DEFAULT_STATE_DIR, DEFAULT_URL } from '../src/contract/defaults.ts';
import { findDaemon } from '../src/ctl/api/config.ts';
import { readSecretFile } from '../src/ctl/api/secret-file.ts';
import { runCommand, runLocalCommand } from '../src/ctl/command.ts';
import { type CommandOutline, completion, type OptionOutline, SHELLS } from '../src/ctl/completion.ts';
import { EXIT } from '../src/ctl/failure.ts';
import type { CommandRunner } from './sandboxctl-arguments.ts';
import { defineEventCommands } from './sandboxctl-events.ts';
import { defineProcessCommands } from './sandboxctl-processes.ts';

// Removes a secret among the arguments from the process list.
process.title = 'sandboxctl';

const program = new Command('sandboxctl')
  .description('Publish and receive events, inspect their delivery, run and follow processes')
  .version(VERSION, '-V, --version')
  .option('--url <url>', `URL of the daemon, or unix:/path (SANDBOXD_URL; default ${DEFAULT_URL})`)
  .option('--token-file <path>', 'file with the control token (SANDBOXD_CONTROL_TOKEN_FILE)')
  .option(
    '--state-dir <dir>',
    `state directory to read the control token from (SANDBOXD_STATE_DIR; default ${DEFAULT_STATE_DIR})`,
  )
  .option('--json', 'print JSON, one value per line')
  .configureHelp({ showGlobalOptions: true })
  .configureOutput({
    outputError: (text, write) =>
      write(
        `sandboxctl: ${text
          .replace(/^error: /, '')
          .trim()
          .replaceAll('\n', ' ')}\n`,
      ),
  })
  .exitOverride()
  .addHelpText(
    'after',
    '\nExit codes: 0 done; 1 refused by the daemon, or not delivered; 2 invalid usage; 3 the daemon cannot be reached',
  );

const runner: CommandRunner = {
  withDaemon: async (command) => {
    process.exitCode = await runCommand(program.opts(), process.env, command);
  },
  withoutDaemon: async (command) => {
    process.exitCode = await runLocalCommand(program.opts(), command);
  },
};

defineEventCommands(program, runner);
defineProcessCommands(program, runner);

program
  .command('doctor')
  .description('check everything a sandbox requires: port, disk, watches, init, clock and webhook')
  .option('--webhook-url <url>', 'the endpoint (SANDBOXD_WEBHOOK_URL)')
  .option(
    '--webhook-secret-file <path>',
    'file with the secret that signs the test event if no daemon is running (SANDBOXD_WEBHOOK_SECRET_FILE)',
  )
  .option('--watch-dir <dir>', 'the watched directory (SANDBOXD_WATCH_DIR; default: what the daemon watches)')
  .addHelpText('after', '\nExit code: 0 no problems, 1 warnings, 2 errors')
  .action((options: { webhookUrl?: string; webhookSecretFile?: string; watchDir?: string }) =>
    runner.withoutDaemon(async (terminal) => {
      const { doctor } = await import('../src/ctl/doctor/doctor.ts');
      const { env } = process;
      const secret_file = options.webhookSecretFile ?? env.SANDBOXD_WEBHOOK_SECRET_FILE;
      const target = {
        ...findDaemon(program.opts(), env),
        state_dir: program.opts().stateDir ?? (env.SANDBOXD_STATE_DIR || DEFAULT_STATE_DIR),
        watch_dir: options.watchDir ?? (env.SANDBOXD_WATCH_DIR || null),
        webhook_url: options.webhookUrl ?? (env.SANDBOXD_WEBHOOK_URL || null),
        webhook_secret: secret_file ? readSecretFile(secret_file) : '',
      };
      return doctor(terminal, target, systemClock);
    }),
  );

program
  .command('completion')
  .description('print the completion script for a shell')
  .addArgument(new Argument('<shell>').choices(SHELLS))
  .action((shell: (typeof SHELLS)[number]) =>
    runner.withoutDaemon((terminal) =>
      completion(
        terminal,
        shell,
        program.name(),
        program.commands.map(commandOutline),
        program.options.map(optionOutline),
      ),
    ),
  );

program.parseAsync().catch((error: unknown) => {
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
});

function commandOutline(command: Command): CommandOutline {
  return {
    name: command.name(),
    description: command.description(),
    options: command.options.map(optionOutline),
    values: command.registeredArguments.flatMap((argument) => argument.argChoices ?? []),
  };
}

function optionOutline({ short, long, description, flags, argChoices }: Option): OptionOutline {
  return {
    flags: [short, long].filter((flag) => flag !== undefined),
    description,
    value: /<(.+)>/.exec(flags)?.[1] ?? null,
    values: argChoices ?? [],
  };
}
