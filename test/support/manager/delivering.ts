import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import type { Log } from '../../../src/base/log.ts';
import type { Database } from '../../../src/manager/database/database.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { replicaName } from '../../../src/manager/database/replica.ts';
import { ManagerOutbox } from '../../../src/manager/outbox/manager-outbox.ts';
import type { DeletionNotice, OutboxCharge, WebhookTarget } from '../../../src/manager/sandboxes/ports.ts';
import type { UndeliveredRecord } from '../../../src/outbox/sqlite/undelivered/undelivered-record.ts';
import { parseCidr } from '../../../src/webhook/address.ts';
import { AddressGuard } from '../../../src/webhook/address-guard.ts';
import { ManualClock } from '../manual-clock.ts';
import { scratchFolder } from '../scratch.ts';
import { type Answer, ScriptedTransport, type Sent } from '../scripted-transport.ts';
import { noticeOf, opened, SEAL, SILENT } from './outbox.ts';

export interface Replica {
  delivery: ManagerOutbox;
  /** Commits a deletion, as the manager does. */
  deleted(overrides?: Partial<DeletionNotice>): Promise<void>;
  handOver(sender: WebhookTarget, records: UndeliveredRecord[]): Promise<void>;
}

/** One replica's delivery on a database; `allowed` are the ranges that may be dialled. */
export async function startReplica(
  database: Database,
  clock: Clock,
  options: {
    transport?: () => ScriptedTransport;
    allowed?: string[];
    name?: string;
    log?: Log;
    charge?: OutboxCharge;
  } = {},
): Promise<Replica> {
  const { transport, allowed = [], name = replicaName(), log = SILENT, charge } = options;
  const guard = new AddressGuard(allowed.flatMap((range) => parseCidr(range) ?? []));
  const delivery = new ManagerOutbox({
    database,
    clock: await DatabaseClock.open(database, clock),
    log,
    seal: SEAL,
    guard,
    replica: name,
    ...(transport ? { makeTransport: transport } : {}),
    ...(charge ? { charge } : {}),
  });
  await delivery.start();
  return {
    delivery,
    async deleted(overrides) {
      const notice = noticeOf(Math.round(clock.wallMs()), overrides);
      await database.db.transaction().execute((tx) => delivery.sandboxDeleted(tx, notice));
      delivery.wake();
    },
    async handOver(sender, records) {
      await database.db.transaction().execute(async (tx) => {
        await delivery.handOverAttempts(tx, await delivery.handOver(tx, sender, records));
      });
      delivery.wake();
    },
  };
}

export interface Scripted extends Replica {
  clock: ManualClock;
  database: Database;
  /** Every attempt of every endpoint, in order. */
  sent: Sent[];
  answer: (sent: Sent) => Answer;
  /** The lines of the log, from `info`. */
  logged: Record<string, unknown>[];
  /** The most attempts that were under way at once. */
  most_under_way(): number;
  states(): Promise<string[]>;
  /** Another replica on the same database, as after a restart. */
  again(): Promise<Replica>;
}

/** A delivery on SQLite with receivers that answer as told and a clock that the test moves. */
export async function deliver(answer: (sent: Sent) => Answer, charge?: OutboxCharge): Promise<Scripted> {
  const clock = new ManualClock();
  const database = await opened(`sqlite:${scratchFolder()}/manager.db`);
  const sent: Sent[] = [];
  const logged: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line) => void logged.push(JSON.parse(line)) });
  let under_way = 0;
  let most_under_way = 0;
  const transport = () => {
    const made = new ScriptedTransport(clock, (each) => {
      sent.push(each);
      return scripted.answer(each);
    });
    const send = made.send.bind(made);
    made.send = async (...request) => {
      most_under_way = Math.max(most_under_way, ++under_way);
      try {
        return await send(...request);
      } finally {
        under_way -= 1;
      }
    };
    return made;
  };
  const again = async () => {
    const replica = await startReplica(database, clock, { transport, log, ...(charge ? { charge } : {}) });
    onTestFinished(async () => {
      const stopping = replica.delivery.stop();
      await clock.advance(5_000);
      await stopping;
    });
    return replica;
  };
  const scripted: Scripted = {
    ...(await again()),
    clock,
    database,
    sent,
    logged,
    answer,
    most_under_way: () => most_under_way,
    async states() {
      const rows = await database.db.selectFrom('outbox').select('state').orderBy('id').execute();
      return rows.map(({ state }) => state);
    },
    again,
  };
  return scripted;
}
