import { Command, Option } from 'commander';
import { type Given, type OptionRow, variableOf } from '../src/base/options.ts';
import { VERSION } from '../src/base/version.ts';
import { StartError } from '../src/contract/errors.ts';
import type { PolicyStatus } from '../src/contract/quotas.ts';
import { SCOPES } from '../src/contract/tokens.ts';
import { managerConfig } from '../src/manager/config/config.ts';
import { readConfigFile } from '../src/manager/config/config-file.ts';
import { MANAGER_OPTIONS } from '../src/manager/config/options.ts';
import { prune } from '../src/manager/prune/prune-command.ts';
import { quotaCommand } from '../src/manager/quota-command.ts';
import { runManager } from '../src/manager/run.ts';
import { tokenCommand } from '../src/manager/token-command.ts';
import { endProgram, givenValues, optionOf, print, printed, reportFailure } from './command-line.ts';
import { MANAGER_GUIDES } from './guides.ts';
import { addCompletion, addGuides, unknownCommand } from './help.ts';

const ENV_PREFIX = 'SANDBOX_MANAGER_';

const DATABASE = MANAGER_OPTIONS.find(({ name }) => name === 'database') as OptionRow;
const databaseOption = () => optionOf(DATABASE);
const configOption = () => new Option('--config <file.yaml>', 'keys are the option names in snake_case');

/** The values of the environment; an empty variable counts as missing. */
function environment(): Given {
  const given: Given = {};
  for (const { name } of [...MANAGER_OPTIONS, { name: 'config' }]) {
    const text = process.env[variableOf(ENV_PREFIX, name)];
    if (text) given[name] = text;
  }
  return given;
}

/** The config of a command line, with the environment and the config file that they name. */
function configOf(command: Command) {
  const { config: named, ...given } = givenValues(command);
  const { config: from_environment, ...rest } = environment();
  const path = named ?? from_environment;
  return managerConfig(given, rest, path === undefined ? {} : readConfigFile(String(path)));
}

function tokenCommands(): Command {
  const token = new Command('token').description('Bearer tokens of teams');
  token
    .command('create')
    .description('create a token and print it once')
    .requiredOption('--team <id>', 'team that the token belongs to')
    .option(
      '--scope <scope>',
      `repeatable: ${SCOPES.join(', ')}`,
      (text: string, all: string[]) => [...all, text],
      [],
    )
    .option('--internal', 'for callers behind an external gateway: requests are not charged')
    .addOption(databaseOption())
    .addOption(configOption())
    .action(async ({ team, scope, internal = false }, command: Command) => {
      const { database } = configOf(command);
      const made = await tokenCommand.create(database, { team, scopes: scope, internal });
      print(`${made}\n`);
    });
  token
    .command('list')
    .description('list the ids of all tokens, never the tokens themselves')
    .option('--json', 'as JSON')
    .addOption(databaseOption())
    .addOption(configOption())
    .action(async ({ json }, command: Command) => {
      const tokens = await tokenCommand.list(configOf(command).database);
      if (json) return void print(`${JSON.stringify({ tokens })}\n`);
      for (const each of tokens) {
        const notes = [each.internal ? 'internal' : '', each.revoked_at ? `revoked ${each.revoked_at}` : ''];
        const line = [each.token_id, each.team_id, each.scopes.join(','), each.created_at, ...notes];
        print(`${line.filter(Boolean).join('  ')}\n`);
      }
    });
  token
    .command('revoke')
    .description('revoke a token at once')
    .argument('<id>')
    .addOption(databaseOption())
    .addOption(configOption())
    .action(async (token_id: string, _options, command: Command) => {
      await tokenCommand.revoke(configOf(command).database, token_id);
    });
  return token;
}

function statusCommand(): Command {
  const LISTEN = MANAGER_OPTIONS.find(({ name }) => name === 'listen') as OptionRow;
  return new Command('status')
    .description(
      'show how a running manager is, and with an admin token what of its node is taken; exit 1: not ready',
    )
    .option('--token-file <path>', `a token of scope admin; otherwise that of ${ENV_PREFIX}TOKEN`)
    .option('--json', 'as JSON')
    .addOption(optionOf(LISTEN))
    .addOption(configOption())
    .action(async ({ json, tokenFile: token_file }, command: Command) => {
      const { managerStatus, statusText } = await import('../src/manager/status-command.ts');
      const token = process.env[`${ENV_PREFIX}TOKEN`] || undefined;
      const status = await managerStatus(configOf(command), { token_file, token });
      print(json ? `${JSON.stringify(status)}\n` : statusText(status));
      if (!status.is_ready) throw new StartError(`the manager is not ready: ${status.reason}`, 1);
    });
}

function pruneCommand(): Command {
  return new Command('prune')
    .description('remove what is otherwise kept for ever, beside running managers')
    .option('--usage-before <time>', 'closed usage windows that end by then; cursors from before read on')
    .option('--tokens-before <time>', 'tokens that were revoked before then')
    .option('--teams', 'teams of which nothing else is kept')
    .option('--dry-run', 'remove nothing, and print how many it would be')
    .option('--json', 'as JSON')
    .addOption(databaseOption())
    .addOption(configOption())
    .action(async ({ json, ...given }, command: Command) => {
      const pruned = await prune(configOf(command).database, given);
      if (json) return void print(`${JSON.stringify(pruned)}\n`);
      for (const [name, count] of Object.entries(pruned)) if (count !== null) print(`${name}  ${count}\n`);
    });
}

function quotaCommands(): Command {
  const quota = new Command('quota').description("Overrides of the region's quotas for teams");
  const of = (name: string, description: string) =>
    quota
      .command(name)
      .description(description)
      .requiredOption('--team <id>', 'team')
      .option('--json', 'as JSON')
      .addOption(databaseOption())
      .addOption(configOption());
  of('list', 'show the quotas of a team').action(async ({ team, json }, command: Command) => {
    printQuotas(await quotaCommand.list(configOf(command).database, team), json);
  });
  of('set', "override a team's quota")
    .argument('<dimension>')
    .option('--limit-value <n>', 'capacity: the maximum; rate: tokens per interval')
    .option('--interval-ms <n>', 'rate: the interval in ms')
    .option('--burst-value <n>', 'rate: the maximum at once')
    .action(async (dimension: string, { team, json, ...texts }, command: Command) => {
      const { database } = configOf(command);
      printQuotas([await quotaCommand.set(database, team, dimension, texts)], json);
    });
  of('unset', "remove a team's override")
    .argument('<dimension>')
    .action(async (dimension: string, { team, json }, command: Command) => {
      printQuotas([await quotaCommand.unset(configOf(command).database, team, dimension)], json);
    });
  return quota;
}

/** The options that say where sandboxes are recorded, and where they are. */
const PLACE_OPTIONS = [
  'database',
  'runtime',
  'data_dir',
  'secret_key_file',
  'metering',
  'region',
  'kubeconfig',
  'kubernetes_namespace',
  'kubernetes_image',
];

function orphansCommands(): Command {
  const orphans = new Command('orphans').description(
    'Sandboxes that are here and not recorded, and the reverse',
  );
  const of = (name: string, description: string) => {
    const command = orphans.command(name).description(description).addOption(configOption());
    for (const row of MANAGER_OPTIONS.filter(({ name }) => PLACE_OPTIONS.includes(name)))
      command.addOption(optionOf(row));
    return command;
  };
  const commands = async () => (await import('../src/manager/orphans/orphans-command.ts')).orphansCommand;
  of('list', 'show the sandboxes that are not recorded, and those recorded of which nothing is here')
    .option('--json', 'as JSON')
    .action(async ({ json }, command: Command) => {
      const found = await (await commands()).list(configOf(command));
      if (json) return void print(`${JSON.stringify(found)}\n`);
      for (const each of found.orphans) {
        const disk = each.disk_mib === null ? '' : `disk ${each.disk_mib} MiB`;
        const pending =
          each.pending_events === null ? 'pending events not known' : `${each.pending_events} pending events`;
        const line = [
          each.sandbox_id,
          each.team_id,
          each.created_at,
          each.state,
          `${each.memory_mib} MiB`,
          disk,
          pending,
        ];
        print(`${line.filter(Boolean).join('  ')}\n`);
      }
      for (const sandbox_id of found.unseen) print(`${sandbox_id}  recorded, and nothing of it is here\n`);
    });
  of('adopt', 'record sandboxes again, with what was kept with them')
    .argument('<id...>')
    .action(async (ids: string[], _options, command: Command) => {
      for (const id of ids)
        printSettled(id, 'is recorded again', await (await commands()).adopt(configOf(command), id));
    });
  of('end', 'have sandboxes ended, and their undelivered events handed over')
    .argument('<id...>')
    .action(async (ids: string[], _options, command: Command) => {
      for (const id of ids)
        printSettled(
          id,
          'is being ended by the manager',
          await (await commands()).end(configOf(command), id),
        );
    });
  of('give-up', 'delete recorded sandboxes of which nothing is here, with what they had not delivered')
    .argument('<id...>')
    .action(async (ids: string[], _options, command: Command) => {
      for (const id of ids) {
        await (await commands()).giveUp(configOf(command), id);
        printSettled(id, 'is given up', []);
      }
    });
  return orphans;
}

function printSettled(sandbox_id: string, what: string, unknown: string[]): void {
  const notes = unknown.map((each) => `; not known: ${each}`).join('');
  print(`${sandbox_id}  ${what}${notes}\n`);
}

function printQuotas(quotas: PolicyStatus[], json: boolean | undefined): void {
  if (json) return void print(`${JSON.stringify({ quotas })}\n`);
  for (const { dimension, limit_value, interval_ms, burst_value, current, source } of quotas) {
    const rate = interval_ms === null ? '' : `every ${interval_ms} ms, at most ${burst_value} at once`;
    const use = current === null ? '' : `${current} in use`;
    const line = [dimension, limit_value ?? 'unlimited', rate, use, source === 'unlimited' ? '' : source];
    print(`${line.filter((part) => part !== '').join('  ')}\n`);
  }
}

function program(exit: (code: number) => void): Command {
  const manager = new Command('sandbox-manager')
    .description(
      `Claims, pauses, forks and deletes sandboxes. Each option is also read from ${ENV_PREFIX}<NAME>`,
    )
    .version(VERSION, '-V, --version')
    .usage('[options] [command]')
    .enablePositionalOptions()
    .allowExcessArguments(true)
    .helpCommand('help [command]')
    .addOption(configOption());
  for (const row of MANAGER_OPTIONS) manager.addOption(optionOf(row));
  manager.action(async (_options, command: Command) => {
    if (command.args[0] !== undefined) unknownCommand(command, command.args[0]);
    exit(await runManager(configOf(command), process.argv[1] as string));
  });
  manager.addCommand(statusCommand());
  manager.addCommand(tokenCommands());
  manager.addCommand(quotaCommands());
  manager.addCommand(pruneCommand());
  manager.addCommand(orphansCommands());
  addCompletion(manager, print);
  addGuides(manager, MANAGER_GUIDES);
  for (const command of [
    manager,
    ...manager.commands,
    ...manager.commands.flatMap((each) => each.commands),
  ]) {
    command.configureOutput({ outputError: () => {}, writeOut: print }).exitOverride();
  }
  return manager;
}

/** Options → config → start. Failures are one line on stderr. */
export async function main(argv: string[]): Promise<void> {
  let exit_code = 0;
  try {
    await program((code) => {
      exit_code = code;
    }).parseAsync(argv);
  } catch (error) {
    exit_code = reportFailure('sandbox-manager', error);
  }
  await endProgram(await printed('sandbox-manager', exit_code));
}
