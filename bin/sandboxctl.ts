#!/usr/bin/env -S node --disable-sigusr1
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { systemClock } from '../src/base/clock.ts';
import { VERSION } from '../src/base/version.ts';
import { DEFAULT_STATE_DIR, DEFAULT_URL, LIST_LIMIT } from '../src/contract/defaults.ts';
import { DELIVERY_STATES } from '../src/contract/deliveries.ts';
import { EVENT_TYPES } from '../src/contract/events.ts';
import { OUTPUT_STREAMS, type ProcessRequest } from '../src/contract/processes.ts';
import { findDaemon } from '../src/ctl/api/config.ts';
import { readSecretFile } from '../src/ctl/api/secret-file.ts';
import { type CommandOutline, completion, type OptionOutline, SHELLS } from '../src/ctl/completion.ts';
import type { Context, Terminal } from '../src/ctl/context.ts';
import { deliveries, watchDeliveries } from '../src/ctl/deliveries.ts';
import { events, followEvents } from '../src/ctl/events.ts';
import { EXIT } from '../src/ctl/failure.ts';
import { forwardTarget } from '../src/ctl/listen/forward.ts';
import { LISTEN_HOST, LISTEN_PORT, listen } from '../src/ctl/listen/listen.ts';
import { logs } from '../src/ctl/logs.ts';
import { ps } from '../src/ctl/ps.ts';
import { publish } from '../src/ctl/publish.ts';
import { REPLAYABLE_STATES, replay, replayAll } from '../src/ctl/replay.ts';
import { interruption, run, runLocal } from '../src/ctl/run/run.ts';
import { runProcess } from '../src/ctl/run/run-process.ts';
import { show } from '../src/ctl/show.ts';
import { signal } from '../src/ctl/signal.ts';
import { status } from '../src/ctl/status.ts';
import { stop } from '../src/ctl/stop.ts';
import { parseDuration } from '../src/ctl/terminal/quantity.ts';
import { testDelivery } from '../src/ctl/test-delivery.ts';

// A secret among the arguments leaves the process list.
process.title = 'sandboxctl';

const program = new Command('sandboxctl')
  .description('Publish events, follow their delivery and receive them; run and follow processes')
  .version(VERSION, '-V, --version')
  .option('--url <url>', `the daemon, also unix:/path (SANDBOXD_URL; default ${DEFAULT_URL})`)
  .option('--token-file <path>', 'file of the control token (SANDBOXD_CONTROL_TOKEN_FILE)')
  .option(
    '--state-dir <dir>',
    `directory whose control-token is used else (SANDBOXD_STATE_DIR; default ${DEFAULT_STATE_DIR})`,
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
    '\nExit codes: 0 done; 1 refused by the daemon, or not delivered; 2 bad usage; 3 the daemon cannot be reached',
  );

const withDaemon = async (command: (context: Context) => Promise<number>) => {
  process.exitCode = await run(program.opts(), process.env, command);
};
const withoutDaemon = async (command: (terminal: Terminal) => Promise<number>) => {
  process.exitCode = await runLocal(program.opts(), command);
};

program
  .command('publish')
  .description('publish an event whose payload is this JSON object, sent as it is')
  .argument('<json>', 'the payload; - reads it from stdin')
  .option('--idempotency-key <key>', 'the same key with the same payload queues one event only')
  .action((json: string, options: { idempotencyKey?: string }) =>
    withDaemon((context) => publish(context, json, process.stdin, options.idempotencyKey)),
  );

program
  .command('listen')
  .description('receive events, verify them and print each on one line')
  .option('--host <host>', 'address to listen on', LISTEN_HOST)
  .option('--port <port>', 'port to listen on; 0 picks one', wholeNumber(0, 65_535), LISTEN_PORT)
  .option('--secret-file <path>', 'file of the secret that events must be signed with')
  .addOption(new Option('--secret <secret>', 'the secret itself').conflicts('secretFile').argParser(notEmpty))
  .option('--forward <url>', 'pass each event on, unchanged, and answer what this URL answers')
  .action((options: { host: string; port: number; secretFile?: string; secret?: string; forward?: string }) =>
    withoutDaemon((terminal) => {
      const { host, port, secretFile, forward } = options;
      const secret = secretFile === undefined ? options.secret : readSecretFile(secretFile);
      const forward_to = forward === undefined ? undefined : forwardTarget(forward);
      return listen(terminal, { host, port, secret, forward_to }, interruption());
    }),
  );

program
  .command('deliveries')
  .description('list events and how their delivery stands, newest first')
  .addOption(new Option('--state <state>', 'only those in this state').choices(DELIVERY_STATES))
  .addOption(new Option('--event-type <type>', 'only those of this type').choices(EVENT_TYPES))
  .option('--limit <number>', 'how many', wholeNumber(1), LIST_LIMIT)
  .option('--watch', 'keep the list up to date')
  .action(
    (options: {
      state?: (typeof DELIVERY_STATES)[number];
      eventType?: string;
      limit: number;
      watch?: true;
    }) =>
      withDaemon((context) => {
        const asked = { state: options.state, event_type: options.eventType, limit: options.limit };
        return options.watch ? watchDeliveries(context, asked, interruption()) : deliveries(context, asked);
      }),
  );

program
  .command('show')
  .description('show one event with its body, headers and delivery attempts')
  .argument('<event_id>')
  .action((event_id: string) => withDaemon((context) => show(context, event_id)));

program
  .command('replay')
  .description('deliver an event again, or all in a state')
  .argument('[event_id]')
  .addOption(new Option('--state <state>', 'all in this state').choices(REPLAYABLE_STATES))
  .action(
    (event_id: string | undefined, { state }: { state?: (typeof REPLAYABLE_STATES)[number] }, command) => {
      if ((event_id === undefined) === (state === undefined)) {
        command.error('error: replay takes either an event_id or --state');
      }
      return withDaemon((context) =>
        event_id === undefined ? replayAll(context, state ?? 'failed') : replay(context, event_id),
      );
    },
  );

program
  .command('test')
  .description('have a test event delivered and show what became of it')
  .action(() => withDaemon(testDelivery));

program
  .command('events')
  .description('print the events that are kept')
  .option('-f, --follow', 'print events as they happen, until interrupted')
  .option('--since <sequence>', 'only events after this one', wholeNumber(0))
  .action((options: { follow?: true; since?: number }) =>
    withDaemon((context) =>
      options.follow ? followEvents(context, interruption(), options.since) : events(context, options.since),
    ),
  );

program
  .command('status')
  .description('show how the sandbox, its outbox and its endpoint are')
  .action(() => withDaemon(status));

program
  .command('run')
  .description('run a command in the sandbox as if it ran here')
  .argument('<command...>', 'the command and its arguments, behind --')
  .option('--name <name>', 'what to call it in events')
  .option('--cwd <dir>', 'where it runs')
  .option('--env <name=value>', 'a variable of its environment; repeatable', environmentEntry)
  .option('--timeout <duration>', 'end it after so long: 500ms, 30s, 5m, 1h; seconds without a unit', timeout)
  .option('--user <name>', 'the account it runs as')
  .option('-i, --interactive', 'send stdin to it')
  .option('-t, --terminal', 'give it a terminal')
  .addHelpText('after', "\nExit code: the command's own, 128 + number where a signal ended it")
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
      withDaemon((context) => {
        const { name, cwd, env, timeout: timeout_ms, user, interactive = false, terminal = false } = options;
        const { stdin, stdout: screen } = process;
        const request = { command, name, cwd, env, timeout_ms, user } as ProcessRequest;
        return runProcess(context, { request, interactive, terminal, stdin, screen });
      }),
  );

program
  .command('ps')
  .description('list processes, also those that have ended')
  .action(() => withDaemon(ps));

program
  .command('logs')
  .description('print the output of a process')
  .argument('<process_id>')
  .option('-f, --follow', 'go on until it has ended')
  .addOption(
    new Option('--stream <stream>', 'only this one').choices([...OUTPUT_STREAMS, 'all']).default('all'),
  )
  .option('--tail <lines>', 'only so many lines before the end', wholeNumber(0))
  .action(
    (process_id: string, options: { follow?: true; stream: 'stdout' | 'stderr' | 'all'; tail?: number }) =>
      withDaemon((context) => {
        const { follow = false, stream, tail: tail_lines } = options;
        return logs(context, process_id, { follow, stream, tail_lines }, interruption());
      }),
  );

program
  .command('signal')
  .description('send a signal to a process and its group')
  .argument('<process_id>')
  .argument('<signal>', 'its name, such as SIGHUP')
  .action((process_id: string, name: string) => withDaemon((context) => signal(context, process_id, name)));

program
  .command('stop')
  .description('end a process with everything it started')
  .argument('<process_id>')
  .option('--grace-ms <ms>', 'from SIGTERM to SIGKILL', wholeNumber(0))
  .action((process_id: string, { graceMs }: { graceMs?: number }) =>
    withDaemon((context) => stop(context, process_id, graceMs)),
  );

program
  .command('doctor')
  .description('look at all that a sandbox needs: port, disk, watches, init, clock and webhook')
  .option('--webhook-url <url>', 'the endpoint (SANDBOXD_WEBHOOK_URL)')
  .option('--webhook-secret-file <path>', 'file of the secret that signs the test event where no daemon runs')
  .option('--watch-dir <dir>', 'the watched directory (SANDBOXD_WATCH_DIR; default: what the daemon watches)')
  .addHelpText('after', '\nExit code: 0 all is well, 1 with a warning, 2 with an error')
  .action((options: { webhookUrl?: string; webhookSecretFile?: string; watchDir?: string }) =>
    withoutDaemon(async (terminal) => {
      const { doctor } = await import('../src/ctl/doctor/doctor.ts');
      const { env } = process;
      const secret_file = options.webhookSecretFile ?? env.SANDBOXD_WEBHOOK_SECRET_FILE;
      const patient = {
        ...findDaemon(program.opts(), env),
        state_dir: program.opts().stateDir ?? (env.SANDBOXD_STATE_DIR || DEFAULT_STATE_DIR),
        watch_dir: options.watchDir ?? (env.SANDBOXD_WATCH_DIR || null),
        webhook_url: options.webhookUrl ?? (env.SANDBOXD_WEBHOOK_URL || null),
        webhook_secret: secret_file ? readSecretFile(secret_file) : '',
      };
      return doctor(terminal, patient, systemClock);
    }),
  );

program
  .command('completion')
  .description('print the completion script of a shell')
  .addArgument(new Argument('<shell>').choices(SHELLS))
  .action((shell: (typeof SHELLS)[number]) =>
    withoutDaemon((terminal) =>
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

function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`It must be a whole number ${range}.`);
  };
}

function environmentEntry(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('It must be NAME=VALUE.');
  return { ...before, [name]: value };
}

function timeout(text: string): number {
  const timeout_ms = parseDuration(text);
  if (timeout_ms) return timeout_ms;
  throw new InvalidArgumentError('It must be a duration such as 500ms, 30s, 5m or 1h.');
}

function notEmpty(text: string): string {
  if (text === '') throw new InvalidArgumentError('It must not be empty.');
  return text;
}

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
