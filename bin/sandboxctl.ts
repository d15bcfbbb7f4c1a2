#!/usr/bin/env -S node --disable-sigusr1
import { Command, CommanderError, Option } from 'commander';
import { systemClock } from '../src/base/clock.ts';
import { VERSION } from '../src/base/version.ts';
import { DEFAULT_STATE_DIR, DEFAULT_URL } from '../src/contract/defaults.ts';
import { readSecretFile } from '../src/ctl/api/secret-file.ts';
import {
  interruption,
  notThrough,
  runCommand,
  runLocalCommand,
  runManagerCommand,
} from '../src/ctl/command.ts';
import { ASKED, COMPLETE } from '../src/ctl/complete/asked.ts';
import { EXIT, RUN_FAILED } from '../src/ctl/failure.ts';
import { findTarget } from '../src/ctl/settings/target.ts';
import { failureLine, integer, print, printError, printed } from './command-line.ts';
import { SANDBOXCTL_GUIDES } from './guides.ts';
import { addCompletion, addGuides, nameGlobalOptions } from './help.ts';
import type { CommandRunner } from './sandboxctl-arguments.ts';
import { defineEventCommands } from './sandboxctl-events.ts';
import { defineFileCommands } from './sandboxctl-files.ts';
import { defineProcessCommands } from './sandboxctl-processes.ts';
import { defineSandboxCommands } from './sandboxctl-sandboxes.ts';

// Removes a secret among the arguments from the process list.
process.title = 'sandboxctl';

const program = new Command('sandboxctl')
  .description('Publish and receive events, run processes, copy files, here and in sandboxes of a manager')
  .version(VERSION, '-V, --version')
  .option('--url <url>', `URL of the daemon, or unix:/path (SANDBOXD_URL; default ${DEFAULT_URL})`)
  .option(
    '--token-file <path>',
    'file with the token (SANDBOXD_CONTROL_TOKEN_FILE; of a manager SANDBOXCTL_TOKEN_FILE, or SANDBOXCTL_TOKEN with the token itself)',
  )
  .option(
    '--state-dir <dir>',
    `state directory to read the control token from (SANDBOXD_STATE_DIR; default ${DEFAULT_STATE_DIR})`,
  )
  .addOption(
    new Option('--manager <url>', 'URL of a manager (SANDBOXCTL_MANAGER)').conflicts(['url', 'stateDir']),
  )
  .addOption(
    new Option('--sandbox <id>', 'sandbox to act on (SANDBOXCTL_SANDBOX)').conflicts(['url', 'stateDir']),
  )
  .option('--profile <name>', 'profile in ~/.config/sandboxctl/config.yaml (SANDBOXCTL_PROFILE)')
  .option('--json', 'print JSON, one value per line')
  .configureOutput({
    writeOut: print,
    writeErr: printError,
    outputError: (text, write) => write(failureLine('sandboxctl', text)),
  })
  .exitOverride()
  .addHelpText(
    'after',
    '\nExit codes: 0 done; 1 refused, or not delivered; 2 invalid usage; 3 the daemon or manager cannot be reached',
  );

const runner: CommandRunner = {
  withDaemon: async (command, rules) => {
    process.exitCode = await runCommand(program.opts(), process.env, command, rules);
  },
  withManager: async (command) => {
    process.exitCode = await runManagerCommand(program.opts(), process.env, command);
  },
  withoutDaemon: async (command) => {
    process.exitCode = await runLocalCommand(program.opts(), command);
  },
};

defineEventCommands(program, runner);
defineProcessCommands(program, runner);
defineFileCommands(program, runner);
defineSandboxCommands(program, runner);

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
      const daemon = await findTarget(program.opts(), env);
      if (daemon.of === 'manager') throw notThrough(daemon, 'doctor checks the machine that it runs on');
      const secret_file = options.webhookSecretFile ?? env.SANDBOXD_WEBHOOK_SECRET_FILE;
      const target = {
        ...daemon,
        watch_dir: options.watchDir ?? (env.SANDBOXD_WATCH_DIR || null),
        webhook_url: options.webhookUrl ?? (env.SANDBOXD_WEBHOOK_URL || null),
        webhook_secret: secret_file ? readSecretFile(secret_file) : '',
      };
      return doctor(terminal, target, systemClock);
    }),
  );

program
  .command('console')
  .description('serve a page that shows the sandbox in a browser, on this machine, until interrupted')
  .option('--port <port>', 'port to listen on; 0 picks a free one', integer(0, 65_535), 0)
  .option('--no-open', 'print the URL and open no browser')
  .action((options: { port: number; open: boolean }) =>
    runner.withDaemon({
      run: async (context) => {
        const { serveConsole } = await import('../src/ctl/console/console.ts');
        const { openBrowser } = await import('../src/ctl/console/open-browser.ts');
        let close = () => {};
        const open = (url: string) => {
          if (options.open) close = openBrowser(url, process.env);
        };
        return serveConsole(context, { port: options.port, open }, interruption()).finally(() => close());
      },
      through_manager: 'a manager serves a console itself, at /console/',
    }),
  );

addCompletion(
  program,
  (script) =>
    runner.withoutDaemon(async ({ out }) => {
      await out.write(script);
      return EXIT.ok;
    }),
  'everywhere',
  ASKED,
);
nameGlobalOptions(program);
addGuides(program, SANDBOXCTL_GUIDES);

if (process.argv[2] === COMPLETE) void offerCandidates();
else
  program
    .parseAsync()
    .catch((error: unknown) => {
      if (!(error instanceof CommanderError)) throw error;
      const usage = program.args[0] === 'run' ? RUN_FAILED : EXIT.usage;
      process.exitCode = error.exitCode === 0 ? EXIT.ok : usage;
    })
    .then(async () => {
      process.exitCode = await printed('sandboxctl', Number(process.exitCode ?? EXIT.ok));
    });

/** Prints candidates for a shell's completion, one a line; within a bounded time, and nothing where there are none. */
async function offerCandidates(): Promise<void> {
  const { COMPLETE_TIMEOUT_MS, complete } = await import('../src/ctl/complete/complete.ts');
  setTimeout(() => process.exit(), COMPLETE_TIMEOUT_MS);
  const optionsOf = (command: Command): Option[] => [
    ...command.options,
    ...command.commands.flatMap((each) => optionsOf(each)),
  ];
  const with_value = optionsOf(program).filter(({ required }) => required);
  const takesValue = (flag: string) => with_value.some(({ short, long }) => flag === short || flag === long);
  const offered = await complete(process.argv.slice(3), takesValue, process.env);
  print(offered.map((each) => `${each}\n`).join(''));
  process.exit(await printed('sandboxctl', EXIT.ok));
}
