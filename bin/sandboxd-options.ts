import { Command, CommanderError } from 'commander';
import { readOptions, SWITCH_OPTION } from '../src/base/options.ts';
import { VERSION } from '../src/base/version.ts';
import { StartError } from '../src/contract/errors.ts';
import { type DaemonConfig, daemonConfig } from '../src/daemon/config.ts';
import { SANDBOXD_OPTIONS } from '../src/daemon/options.ts';
import { runDaemon } from '../src/daemon/run.ts';
import { checkedOptionOf, endProgram, givenValues, print, printed, reportFailure } from './command-line.ts';
import { SANDBOXD_GUIDES } from './guides.ts';
import { addCompletion, addGuides, unknownCommand } from './help.ts';

const ENV_PREFIX = 'SANDBOXD_';

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
    .configureOutput({ outputError: () => {}, writeOut: print })
    .exitOverride();
  for (const row of SANDBOXD_OPTIONS) made.addOption(checkedOptionOf(row, ENV_PREFIX));
  addCompletion(made, (script) => {
    print(script);
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
  const options = readOptions(SANDBOXD_OPTIONS, givenValues(parsed));
  return daemonConfig(options, main_command, env_secret);
}

/** Runs the daemon and exits with its code. An error before the start is one line on stderr. */
export async function runSandboxd(
  argv: string[],
  env_secret: string | undefined,
  environment: Record<string, string>,
): Promise<void> {
  let exit_code: number;
  try {
    exit_code = await runDaemon(parseOptions(argv, env_secret), environment);
  } catch (error) {
    exit_code = await printed('sandboxd', reportFailure('sandboxd', error));
  }
  await endProgram(exit_code);
}
