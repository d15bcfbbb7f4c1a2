import { type Command, InvalidArgumentError, Option } from 'commander';
import { LIST_LIMIT } from '../src/contract/defaults.ts';
import { EVENT_TYPES } from '../src/contract/events.ts';
import { SANDBOX_NETWORK_MODES } from '../src/contract/network.ts';
import { DIMENSIONS, MANAGED_STATUSES, WEBHOOK_RETRIES, WINDOW_TYPES } from '../src/contract/words.ts';
import type { ClaimOptions, WebhookOptions } from '../src/ctl/manager/claim.ts';
import type { SandboxListOptions } from '../src/ctl/manager/sandbox-list.ts';
import type { UsageOptions } from '../src/ctl/manager/usage.ts';
import { integer } from './command-line.ts';
import { type CommandRunner, durationArgument, environmentEntry } from './sandboxctl-arguments.ts';

/** Sandboxes in a list where no number is asked for, as of the API. */
const SANDBOXES_LISTED = 50;
const ID = 'its id, or as much of the beginning as is unique; default: --sandbox';
const TTL: [flags: string, description: string] = [
  '--ttl <duration>',
  'pause it after this time; 0 is never',
];
const HARD_TTL: [flags: string, description: string] = [
  '--hard-ttl <duration>',
  'delete it after this time; 0 is never',
];

/** Defines the commands that go to a manager: sandboxes, quotas and usage. Their code is loaded with the first of them. */
export function defineSandboxCommands(program: Command, { withManager }: CommandRunner): void {
  const sandbox = program
    .command('sandbox')
    .description("claim, list, pause, fork and delete a manager's sandboxes");
  defineReads(sandbox, withManager);
  defineClaim(sandbox, withManager);
  defineChanges(sandbox, withManager);

  program
    .command('quota')
    .description("show the team's quotas, or one of them")
    .argument('[dimension]', DIMENSIONS.join(', '))
    .action((dimension?: string) =>
      withManager(async (context) => (await import('../src/ctl/manager/quota.ts')).quota(context, dimension)),
    );

  program
    .command('usage')
    .description("list the team's closed usage windows in the order of their recording")
    .option('--cursor <cursor>', 'only windows after those that this cursor came with')
    .addOption(new Option('--type <type>', 'only windows of this type').choices(WINDOW_TYPES))
    .option('--limit <number>', 'maximum number of windows', integer(1), LIST_LIMIT)
    .action((options: UsageOptions) =>
      withManager(async (context) => (await import('../src/ctl/manager/usage.ts')).usage(context, options)),
    );
}

type Run = CommandRunner['withManager'];

function defineReads(sandbox: Command, withManager: Run): void {
  sandbox
    .command('list')
    .description("list the team's sandboxes, newest first")
    .addOption(new Option('--status <status>', 'only sandboxes in this status').choices(MANAGED_STATUSES))
    .option('--template <name>', 'only sandboxes of this template')
    .option('--metadata <key:text>', 'only sandboxes with this in their metadata; repeatable', pair)
    .option('--limit <number>', 'maximum number of sandboxes', integer(1), SANDBOXES_LISTED)
    .action((options: Omit<SandboxListOptions, 'metadata'> & { metadata?: Record<string, string> }) =>
      withManager(async (context) => {
        const { printSandboxes } = await import('../src/ctl/manager/sandbox-list.ts');
        const metadata = Object.entries(options.metadata ?? {}).map(([key, text]) => `${key}:${text}`);
        return printSandboxes(context, { ...options, metadata });
      }),
    );

  sandbox
    .command('show')
    .description('show one sandbox with its configuration')
    .argument('[sandbox_id]', ID)
    .action((id?: string) =>
      withManager(async (context) =>
        (await import('../src/ctl/manager/sandbox-record.ts')).showSandbox(context, id),
      ),
    );
}

function defineClaim(sandbox: Command, withManager: Run): void {
  withWebhook(sandbox.command('claim'))
    .description('claim a sandbox and print its id')
    .option('--template <name>', 'a label; default: default')
    .option('--env <name=value>', 'set a variable of its processes; repeatable', environmentEntry)
    .option('--env-from <path>', 'variables of its processes, a NAME=VALUE on each line')
    .option('--metadata <key:text>', 'label it; repeatable', pair)
    .option(...TTL, durationArgument)
    .option(...HARD_TTL, durationArgument)
    .option(
      '--idle-ttl <duration>',
      'pause it when nobody has used it for so long; 0 is never',
      durationArgument,
    )
    .option('--auto-resume', 'resume it with the next call while it is paused')
    .option('--memory <size>', 'such as 128Mi or 1Gi')
    .option('--cpu <cores>', 'such as 0.5 or 2', cores)
    .option('--disk <size>', 'what it can write, such as 1Gi')
    .addOption(
      new Option('--network <mode>', 'block-all leaves only its loopback').choices(SANDBOX_NETWORK_MODES),
    )
    .option('--idempotency-key <key>', 'the same claim with the same key again claims no second sandbox')
    .action((options: ClaimOptions) =>
      withManager(async (context) => (await import('../src/ctl/manager/claim.ts')).claim(context, options)),
    );
}

function defineChanges(sandbox: Command, withManager: Run): void {
  const changes = () => import('../src/ctl/manager/change.ts');
  for (const verb of ['pause', 'resume'] as const) {
    sandbox
      .command(verb)
      .description(verb === 'pause' ? 'pause a sandbox' : 'resume a paused sandbox')
      .argument('[sandbox_id]', ID)
      .option('--no-memory', 'end its processes, and keep its disk')
      .action((id: string | undefined, { memory }: { memory: boolean }) =>
        withManager(async (context) => (await changes()).setPaused(context, verb, id, memory)),
      );
  }

  withWebhook(sandbox.command('fork'))
    .description(
      "copy a sandbox and print the copy's id; it starts paused; a webhook takes the place of its own",
    )
    .argument('[sandbox_id]', ID)
    .option(...TTL, durationArgument)
    .option(...HARD_TTL, durationArgument)
    .action((id: string | undefined, options: WebhookOptions & { ttl?: number; hardTtl?: number }) =>
      withManager(async (context) => {
        const [{ fork, seconds }, { webhookOf }] = [
          await changes(),
          await import('../src/ctl/manager/claim.ts'),
        ];
        const { ttl, hardTtl } = options;
        const durations = { ttl: seconds('--ttl', ttl), hard_ttl: seconds('--hard-ttl', hardTtl) };
        return fork(context, id, { ...durations, webhook: webhookOf(options) });
      }),
    );

  sandbox
    .command('refresh')
    .description("restart a sandbox's ttl")
    .argument('[sandbox_id]', ID)
    .option('--duration <duration>', 'another time than its ttl', durationArgument)
    .action((id: string | undefined, options: { duration?: number }) =>
      withManager(async (context) => {
        const { refresh, seconds } = await changes();
        return refresh(context, id, seconds('--duration', options.duration));
      }),
    );

  sandbox
    .command('delete')
    .alias('kill')
    .description('shut sandboxes down gracefully and delete them with all that is in them')
    .argument('[sandbox_id...]', 'their ids, or as much of the beginnings as is unique')
    .action((ids: string[], _options: unknown, command: Command) =>
      withManager(async (context) => {
        const { sandbox: named } = command.optsWithGlobals() as { sandbox?: string };
        const given = ids.length === 0 && named !== undefined ? [named] : ids;
        return (await changes()).deleteSandboxes(context, given);
      }),
    );
}

/** Adds the options of a sandbox's webhook. */
function withWebhook(command: Command): Command {
  return command
    .option('--webhook-url <url>', 'where its events go')
    .option('--webhook-secret-file <path>', 'file with the secret that signs its events')
    .addOption(
      new Option('--webhook-retry <class>', 'statuses that are tried again; default: transient').choices(
        WEBHOOK_RETRIES,
      ),
    )
    .option('--watch-dir <dir>', 'the directory in it to watch')
    .option('--watch-ignore <glob>', 'leave out what matches; repeatable', several)
    .addOption(
      new Option('--event <type>', 'send this kind of events and no other; repeatable').argParser(eventType),
    );
}

/** Adds one `key:text` to the pairs given before it. */
function pair(text: string, before: Record<string, string> = {}): Record<string, string> {
  const colon = text.indexOf(':');
  if (colon < 1) throw new InvalidArgumentError('It must be key:text.');
  return { ...before, [text.slice(0, colon)]: text.slice(colon + 1) };
}

function cores(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('It must be a number of cores such as 0.5 or 2.');
}

function several(text: string, before: string[] = []): string[] {
  return [...before, text];
}

function eventType(text: string, before?: string[]): string[] {
  if (EVENT_TYPES.some((each) => each === text)) return several(text, before);
  throw new InvalidArgumentError(`Allowed choices are ${EVENT_TYPES.join(', ')}.`);
}
