import { type Command, Option } from 'commander';
import { LIST_LIMIT } from '../src/contract/defaults.ts';
import { EVENT_TYPES, type EventType } from '../src/contract/events.ts';
import {
  DELIVERY_STATES,
  FINAL_STATES,
  type FinalState,
  UNDELIVERED_STATES,
  type UndeliveredState,
} from '../src/contract/words.ts';
import { readSecretFile } from '../src/ctl/api/secret-file.ts';
import { interruption } from '../src/ctl/command.ts';
import { deliveries, watchDeliveries } from '../src/ctl/deliveries.ts';
import { discard, discardAll } from '../src/ctl/discard.ts';
import { events, followEvents } from '../src/ctl/events.ts';
import { forwardTarget } from '../src/ctl/listen/forward.ts';
import { LISTEN_HOST, LISTEN_PORT, listen } from '../src/ctl/listen/listen.ts';
import { publish } from '../src/ctl/publish.ts';
import { replay, replayAll } from '../src/ctl/replay.ts';
import { show } from '../src/ctl/show.ts';
import { status } from '../src/ctl/status.ts';
import { testDelivery } from '../src/ctl/test-delivery.ts';
import { filled, integer } from './command-line.ts';
import type { CommandRunner } from './sandboxctl-arguments.ts';

/** Defines the commands that publish, receive and inspect events. */
export function defineEventCommands(
  program: Command,
  { withDaemon, withManager, withoutDaemon }: CommandRunner,
): void {
  program
    .command('publish')
    .description('publish an event with exactly this payload')
    .argument('<json>', 'the payload, a JSON object; - reads it from stdin')
    .option(
      '--idempotency-key <key>',
      'publishing the same payload with the same key again queues no second event',
    )
    .action((json: string, options: { idempotencyKey?: string }) =>
      withDaemon({
        run: (context) => publish(context, json, process.stdin, options.idempotencyKey),
        through_manager: 'publish is for programs in a sandbox',
      }),
    );

  program
    .command('listen')
    .description('receive events, verify them and print each on one line')
    .option('--host <host>', 'address to listen on', LISTEN_HOST)
    .option('--port <port>', 'port to listen on; 0 picks a free one', integer(0, 65_535), LISTEN_PORT)
    .option('--secret-file <path>', 'file with the secret that events must be signed with')
    .addOption(new Option('--secret <secret>', 'the secret itself').conflicts('secretFile').argParser(filled))
    .option('--forward <url>', 'forward each event unchanged to this URL and return its answer')
    .action(
      (options: { host: string; port: number; secretFile?: string; secret?: string; forward?: string }) =>
        withoutDaemon((terminal) => {
          const { host, port, secretFile, forward } = options;
          const secret = secretFile === undefined ? options.secret : readSecretFile(secretFile);
          const forward_to = forward === undefined ? undefined : forwardTarget(forward);
          return listen(terminal, { host, port, secret, forward_to }, interruption());
        }),
    );

  program
    .command('deliveries')
    .description('list events with the state of their delivery, newest first')
    .addOption(new Option('--state <state>', 'only events in this state').choices(DELIVERY_STATES))
    .addOption(new Option('--event-type <type>', 'only events of this type').choices(EVENT_TYPES))
    .option('--limit <number>', 'maximum number of events', integer(1), LIST_LIMIT)
    .option('--watch', 'keep the list up to date until interrupted')
    .action(
      (options: {
        state?: (typeof DELIVERY_STATES)[number];
        eventType?: EventType;
        limit: number;
        watch?: true;
      }) =>
        withDaemon((context) => {
          const filter = { state: options.state, event_type: options.eventType, limit: options.limit };
          return options.watch
            ? watchDeliveries(context, filter, interruption())
            : deliveries(context, filter);
        }),
    );

  program
    .command('show')
    .description('show one event with its body, headers and delivery attempts')
    .argument('<event_id>', 'the id of the event, or as much of its beginning as is unique')
    .action((event_id: string) => withDaemon((context) => show(context, event_id)));

  program
    .command('replay')
    .description('deliver an event again, or all events in a state')
    .argument('[event_id]', 'the id of the event, or as much of its beginning as is unique')
    .addOption(new Option('--state <state>', 'all events in this state').choices(FINAL_STATES))
    .action((event_id: string | undefined, { state }: { state?: FinalState }, command) => {
      if ((event_id === undefined) === (state === undefined)) {
        command.error('error: replay takes either an event_id or --state');
      }
      return withDaemon((context) =>
        event_id === undefined ? replayAll(context, state ?? 'failed') : replay(context, event_id),
      );
    });

  program
    .command('discard')
    .description('discard an event that is not delivered any more, or all in a state')
    .argument('[event_id]', 'the id of the event, or as much of its beginning as is unique')
    .addOption(new Option('--state <state>', 'all events in this state').choices(UNDELIVERED_STATES))
    .action((event_id: string | undefined, { state }: { state?: UndeliveredState }, command) => {
      if ((event_id === undefined) === (state === undefined)) {
        command.error('error: discard takes either an event_id or --state');
      }
      return withDaemon((context) =>
        event_id === undefined ? discardAll(context, state ?? 'failed') : discard(context, event_id),
      );
    });

  program
    .command('test')
    .description('publish a test event, wait for its delivery and show it')
    .action(() => withDaemon({ run: testDelivery, through_manager: 'test asks a daemon' }));

  program
    .command('events')
    .description('print stored events, oldest first')
    .option('-f, --follow', 'print new events as they happen, until interrupted')
    .option('--since <sequence>', 'only events after this sequence', integer(0))
    .option('--team', "the lifecycle events of all of the team's sandboxes, from the manager")
    .option('--cursor <cursor>', 'with --team: only events after those that this cursor came with')
    .action((options: { follow?: true; since?: number; team?: true; cursor?: string }, command: Command) => {
      const { follow, since, team, cursor } = options;
      if (team ? since !== undefined : cursor !== undefined) {
        command.error(`error: ${team ? '--since is not for --team' : '--cursor needs --team'}`);
      }
      if (!team) {
        return withDaemon((context) =>
          follow ? followEvents(context, interruption(), since) : events(context, since),
        );
      }
      return withManager(async (context) => {
        const { followTeamEvents, teamEvents } = await import('../src/ctl/manager/team-events.ts');
        return follow ? followTeamEvents(context, interruption(), cursor) : teamEvents(context, cursor);
      });
    });

  program
    .command('status')
    .description('show the state of the sandbox, its outbox and its endpoint')
    .action(() =>
      withDaemon({
        run: status,
        through_manager: async (context) =>
          (await import('../src/ctl/manager/sandbox-record.ts')).showSandbox(context),
      }),
    );
}
