import { Command, CommanderError, Option } from 'commander';
import { LOG_LEVELS } from '../src/base/log.ts';
import { SWITCH_OPTION } from '../src/base/options.ts';
import { VERSION } from '../src/base/version.ts';
import {
  ATTEMPT_TIMEOUT_MS,
  DEFAULT_HOST,
  DEFAULT_PORT,
  DEFAULT_STATE_DIR,
  DELIVERY_CONCURRENCY,
  DELIVERY_WINDOW_MS,
  OUTBOX_MAX_BYTES,
  OUTBOX_MAX_RECORDS,
  SHUTDOWN_GRACE_MS,
} from '../src/contract/defaults.ts';
import { StartError } from '../src/contract/errors.ts';
import { RESTART_POLICIES } from '../src/contract/processes.ts';
import { type DaemonConfig, daemonConfig, type SandboxdOptions } from '../src/daemon/config.ts';
import { runDaemon } from '../src/daemon/run.ts';
import { filled, integer, reportFailure } from './command-line.ts';
import { SANDBOXD_GUIDES } from './guides.ts';
import { addCompletion, addGuides, unknownCommand } from './help.ts';

const ENV_PREFIX = 'SANDBOXD_';
const DAY_MS = 24 * 60 * 60 * 1000;

/** An option that can also be set by its environment variable; the flag takes precedence. */
function option(flags: string, description: string): Option {
  const made = new Option(flags, description);
  const name = made.long?.slice(2).replaceAll('-', '_').toUpperCase();
  return made.env(`${ENV_PREFIX}${name}`);
}

/** `--watch-ignore` may be repeated; its environment variable has one glob per line. */
function globs(text: string, before: string[] = []): string[] {
  return [...before, ...text.split('\n').filter((glob) => glob !== '')];
}

/** Parses the variables of switches: commander itself turns a switch on for any value. */
function readSwitches(parsed: Command): void {
  for (const switched of parsed.options.filter((each) => each.isBoolean() && each.envVar)) {
    if (parsed.getOptionValueSource(switched.attributeName()) !== 'env') continue;
    const text = process.env[switched.envVar as string] ?? '';
    const is_on = text === '' ? false : SWITCH_OPTION.parse(text);
    if (is_on === null) {
      throw new StartError(
        `${switched.long} value '${text}' from env '${switched.envVar}' is invalid. It ${SWITCH_OPTION.accepted}.`,
        2,
      );
    }
    parsed.setOptionValueWithSource(switched.attributeName(), is_on, 'env');
  }
}

function command(): Command {
  const made = new Command('sandboxd')
    .description('Supervises processes in a sandbox and delivers its events to a webhook')
    .usage('[options] [-- command [args…]]')
    .helpCommand('help [command]')
    .action(() => {})
    .version(VERSION, '-V, --version')
    .allowExcessArguments(true)
    .addOption(option('--webhook-url <url>', 'where events are delivered (http or https)'))
    .addOption(option('--webhook-secret-file <path>', 'file with the secret that signs deliveries'))
    .addOption(
      new Option('--webhook-secret <secret>', 'the secret itself; prefer the file (SANDBOXD_WEBHOOK_SECRET)'),
    )
    .addOption(option('--watch-dir <dir>', 'directory whose changes are reported; may be created later'))
    .addOption(option('--watch-ignore <glob>', 'ignore matching paths; repeatable').argParser(globs))
    .addOption(option('--sandbox-id <id>', 'id of the sandbox, sent with every event'))
    .addOption(option('--team-id <id>', 'id of its team, sent with every event'))
    .addOption(
      option('--host <host>', 'address to listen on; localhost is 127.0.0.1 and [::1]')
        .default(DEFAULT_HOST)
        .argParser(filled),
    )
    .addOption(
      option('--port <port>', 'port to listen on; 0 picks a free one')
        .default(DEFAULT_PORT)
        .argParser(integer(0, 65_535)),
    )
    .addOption(
      option(
        '--control-token-file <path>',
        'file with the control token; created if missing (default: <state-dir>/control-token)',
      ),
    )
    .addOption(option('--control-socket <path>', 'also serve on this Unix socket, without a token'))
    .addOption(
      option(
        '--state-dir <dir>',
        'directory for the outbox and process output; must be on persistent storage',
      )
        .default(DEFAULT_STATE_DIR)
        .argParser(filled),
    )
    .addOption(
      option('--restart <policy>', 'restart policy of the main command')
        .choices(RESTART_POLICIES)
        .default('never'),
    )
    .addOption(option('--keep-alive', 'keep running after the main command has ended'))
    .addOption(option('--process-user <name>', "user that processes run as (default: the daemon's own)"))
    .addOption(
      option('--attempt-timeout-ms <ms>', 'timeout of one delivery attempt')
        .default(ATTEMPT_TIMEOUT_MS)
        .argParser(integer(1, 10 * 60_000)),
    )
    .addOption(
      option('--delivery-window-ms <ms>', 'how long a record is retried')
        .default(DELIVERY_WINDOW_MS)
        .argParser(integer(1, 365 * DAY_MS)),
    )
    .addOption(
      option('--delivery-concurrency <n>', 'maximum concurrent delivery attempts')
        .default(DELIVERY_CONCURRENCY)
        .argParser(integer(1, 1024)),
    )
    .addOption(
      option('--outbox-max-bytes <bytes>', 'maximum size of undelivered records')
        .default(OUTBOX_MAX_BYTES)
        .argParser(integer(1, Number.MAX_SAFE_INTEGER)),
    )
    .addOption(
      option('--outbox-max-records <n>', 'maximum number of undelivered records')
        .default(OUTBOX_MAX_RECORDS)
        .argParser(integer(1, 1_000_000_000)),
    )
    .addOption(
      option('--shutdown-grace-ms <ms>', 'time from SIGTERM to SIGKILL, and again for the last deliveries')
        .default(SHUTDOWN_GRACE_MS)
        .argParser(integer(0, DAY_MS)),
    )
    .addOption(
      option('--await-init', 'start without identity and webhook; wait for POST /api/v1/sandbox/init'),
    )
    .addOption(
      option('--log-level <level>', 'level of the JSON log on stderr').choices(LOG_LEVELS).default('info'),
    )
    .configureOutput({ outputError: () => {} })
    .exitOverride();
  addCompletion(made, (script) => {
    process.stdout.write(script);
    throw new CommanderError(0, 'commander.help', '');
  });
  addGuides(made, SANDBOXD_GUIDES);
  return made;
}

/** Parses the command line and the environment. Throws StartError or CommanderError. */
export function parseOptions(argv: string[], env_secret: string | undefined): DaemonConfig {
  const separator = argv.indexOf('--');
  const parsed = command().parse(separator < 0 ? argv : argv.slice(0, separator));
  readSwitches(parsed);
  if (parsed.args.length > 0) {
    const word = parsed.args[0] as string;
    unknownCommand(parsed, word, `${word} is not an option; put a main command after --`);
  }
  const main_command = separator < 0 ? [] : argv.slice(separator + 1);
  if (separator >= 0 && main_command.length === 0)
    throw new StartError('-- must be followed by a command', 2);
  return daemonConfig(parsed.opts<SandboxdOptions>(), main_command, env_secret);
}

/** Runs the daemon and exits with its code. An error before the start is one line on stderr. */
export async function runSandboxd(
  argv: string[],
  env_secret: string | undefined,
  environment: Record<string, string>,
): Promise<void> {
  try {
    process.exit(await runDaemon(parseOptions(argv, env_secret), environment));
  } catch (error) {
    process.exit(reportFailure('sandboxd', error));
  }
}
