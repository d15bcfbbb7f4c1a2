import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import type { WebhookRetry } from '../../../src/contract/words.ts';
import type { AttemptReport } from '../../../src/outbox/attempts.ts';
import { Dispatcher, type DispatcherOptions } from '../../../src/outbox/dispatcher.ts';
import { UrlSender } from '../../../src/outbox/sender.ts';
import { draft, InProcessStore, openRows, type StoreSettings } from '../in-process-store.ts';
import { ManualClock } from '../manual-clock.ts';
import { type Answer, ScriptedTransport, type Sent } from '../scripted-transport.ts';

export interface Delivery {
  clock: ManualClock;
  store: InProcessStore;
  transport: ScriptedTransport;
  dispatcher: Dispatcher;
  reports: AttemptReport[];
  /** The lines of the log. */
  logged: Record<string, unknown>[];
  /** Commits so many events at once and lets everything that can happen now happen. */
  publish(count: number): Promise<string[]>;
  state(event_id: string): string | undefined;
  /** A dispatcher on the same rows, as after a restart. */
  restart(): Promise<Delivery>;
}

export type DeliveryOptions = Partial<DispatcherOptions> &
  StoreSettings & {
    attempt_timeout_ms?: number;
    random?: () => number;
    retry?: WebhookRetry;
    mayStart?: (under_way: number) => boolean;
  };

/** A started dispatcher on real rows, with a receiver that answers as told and a clock that the test moves. */
export async function deliver(
  answer: (sent: Sent) => Answer,
  options: DeliveryOptions = {},
  clock = new ManualClock(),
): Promise<Delivery> {
  const { rows, db } = openRows(clock, options);
  // Thousands of commits: that they are synced is another test's matter.
  db.pragma('synchronous = OFF');
  return dispatch(answer, options, clock, rows, db);
}

async function dispatch(
  answer: (sent: Sent) => Answer,
  options: DeliveryOptions,
  clock: ManualClock,
  rows: InProcessStore['rows'],
  db: ReturnType<typeof openRows>['db'],
): Promise<Delivery> {
  const store = new InProcessStore(rows);
  const transport = new ScriptedTransport(clock, answer);
  const reports: AttemptReport[] = [];
  const logged: Record<string, unknown>[] = [];
  const dispatcher = new Dispatcher(
    { concurrency: options.concurrency ?? 16 },
    {
      store,
      sender: new UrlSender(
        'http://receiver.invalid/',
        options.secret ?? '',
        options.attempt_timeout_ms ?? 15_000,
        transport,
      ),
      clock,
      log: pino({ level: 'info' }, { write: (line) => void logged.push(JSON.parse(line)) }),
      // In the middle of the jitter: waits are as long as they are named.
      random: options.random ?? (() => 0.5),
      retryOf: () => options.retry ?? 'transient',
      onAttempt: (report) => reports.push(report),
      ...(options.mayStart ? { mayStart: options.mayStart } : {}),
    },
  );
  onTestFinished(() => dispatcher.stop());
  await dispatcher.start();
  await clock.advance(0);
  const state_of = db
    .prepare('SELECT state FROM deliveries JOIN records USING (id) WHERE event_id = ?')
    .pluck();
  return {
    clock,
    store,
    transport,
    dispatcher,
    reports,
    logged,
    async publish(count) {
      const event_ids = store.append(...Array.from({ length: count }, () => draft()));
      await clock.advance(0);
      return event_ids;
    },
    state: (event_id) => state_of.get(event_id) as string | undefined,
    async restart() {
      await dispatcher.stop();
      return dispatch(transport.answer, options, clock, rows, db);
    },
  };
}

/** Answers the n-th attempt at a record with the n-th of these, and all later ones with the last. */
export const inTurn =
  (...answers: Answer[]) =>
  ({ attempt }: Sent): Answer =>
    answers[Math.min(attempt, answers.length) - 1] as Answer;

/** The whole numbers from one to another. */
export const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
