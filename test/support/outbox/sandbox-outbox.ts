import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { DELIVERY_WINDOW_MS, RETAIN_DELIVERED_MS, RETAIN_FAILED_MS } from '../../../src/contract/defaults.ts';
import type { OutboxCounts } from '../../../src/contract/deliveries.ts';
import { OutboxClient } from '../../../src/outbox/sqlite/client.ts';
import { OutboxFiles } from '../../../src/outbox/sqlite/files/outbox-files.ts';
import { StateLock } from '../../../src/outbox/sqlite/files/state-lock.ts';
import type { CallName, Calls, FromWriter, WriterCall } from '../../../src/outbox/sqlite/messages.ts';
import { Writer } from '../../../src/outbox/sqlite/writer.ts';
import type {
  Append,
  AppendResult,
  AttemptOutcome,
  DeliveryStore,
  LoadedRecord,
  RecordsListener,
} from '../../../src/outbox/store.ts';
import { draft } from '../in-process-store.ts';
import { ManualClock } from '../manual-clock.ts';
import { scratchFolder } from '../scratch.ts';
import type { OutboxUnderTest } from './conformance/outbox-under-test.ts';

const LIMITS = { max_bytes: 2 ** 30, max_records: 100_000, window_ms: DELIVERY_WINDOW_MS };
const OWNER = { sandbox_id: 'sb-1', team_id: 'team-1', secret: 'made for this test' };

const PROMISED = {
  event_type: 'agent.event',
  window_ms: DELIVERY_WINDOW_MS,
  retained_ms: { delivered: RETAIN_DELIVERED_MS, failed: RETAIN_FAILED_MS, expired: RETAIN_FAILED_MS },
};

/** What is in the state directory now, as a process that is killed leaves it. */
function leftBehind(state_dir: string): string {
  const copy = join(scratchFolder(), 'state');
  cpSync(state_dir, copy, { recursive: true });
  return copy;
}

/** The writer as its thread runs it, on the test's own thread and clock, asked as the client asks it. */
class WriterStore implements DeliveryStore {
  readonly #writer: Writer;
  readonly #clock: ManualClock;
  readonly #replies: FromWriter[] = [];
  #number = 0;
  #listener: RecordsListener | null = null;

  constructor(files: OutboxFiles, clock: ManualClock) {
    const reply = (message: FromWriter) => void this.#replies.push(message);
    this.#writer = new Writer({ files, limits: LIMITS, clock, reply });
    this.#clock = clock;
    this.call('adopt', OWNER);
  }

  call<Name extends CallName>(name: Name, input: Calls[Name]['in']): Calls[Name]['out'] {
    this.#writer.handle([{ kind: 'call', call: ++this.#number, name, input } as WriterCall]);
    const answer = this.#last('answer');
    if (answer.call !== this.#number || answer.error !== null) throw new Error(`${name}: ${answer.error}`);
    return answer.output as Calls[Name]['out'];
  }

  commit(appends: Append[], outcomes: AttemptOutcome[] = []): AppendResult[] {
    const wants_records = this.#listener?.hasRoom() ?? false;
    this.#writer.handle([{ kind: 'batch', batch: ++this.#number, appends, outcomes, wants_records }]);
    const { batches, added, trouble } = this.#last('done');
    if (trouble !== null) throw new Error(trouble);
    if (appends.length > 0) this.#listener?.onAdded(added);
    return batches.flatMap(({ results }) => results);
  }

  #last<Kind extends FromWriter['kind']>(kind: Kind): Extract<FromWriter, { kind: Kind }> {
    const message = this.#replies.findLast((each) => each.kind === kind);
    if (!message) throw new Error(`the writer has not said ${kind}`);
    return message as Extract<FromWriter, { kind: Kind }>;
  }

  counts(): OutboxCounts {
    return this.#last('answer').counts;
  }

  stop(): void {
    this.#writer.stop();
  }

  now(): number {
    return Math.round(this.#clock.monotonicMs()) + this.#last('opened').offset_ms;
  }

  async untried(after_id: number, limit: number) {
    return this.call('untried', { after_id, limit });
  }

  async due(limit: number) {
    return this.call('due', { limit });
  }

  async overdue(limit: number) {
    return this.call('overdue', { limit });
  }

  async probeCandidate(in_flight: number[]) {
    return this.call('probeCandidate', { in_flight });
  }

  async record(outcome: AttemptOutcome): Promise<void> {
    this.commit([], [outcome]);
  }

  load(record: LoadedRecord): LoadedRecord {
    return record;
  }

  onRecordsAdded(listener: RecordsListener): void {
    this.#listener = listener;
  }
}

function eventIdsOf(results: AppendResult[]): string[] {
  return results.flatMap((result) =>
    'records' in result ? result.records.map(({ event_id }) => event_id) : [],
  );
}

/** The sandbox's engine on the test's thread and clock: the real writer, rows and files. */
export async function writerOutbox(
  clock = new ManualClock(),
  state_dir = join(scratchFolder(), 'state'),
): Promise<OutboxUnderTest> {
  const lock = new StateLock(state_dir);
  const files = new OutboxFiles(state_dir, clock, lock);
  const store = new WriterStore(files, clock);
  onTestFinished(() => {
    store.stop();
    files.close();
    lock.release();
  });
  return {
    ...PROMISED,
    store,
    append: async (count) => eventIdsOf(store.commit(Array.from({ length: count }, eventAppend))),
    async list(filter) {
      const { deliveries, last_id, more } = store.call('list', filter);
      return { deliveries, next_cursor: more ? String(last_id) : null };
    },
    find: async (event_id) => store.call('find', { event_id }),
    replay: async (event_id) => store.call('replay', { event_id }),
    replayAll: async (state) => store.call('replaySome', { state, limit: 1_000 }),
    discard: async (event_id) => store.call('discard', { event_id }) === 'discarded',
    discardAll: async (state) => store.call('discardSome', { state, limit: 1_000 }),
    async counts() {
      const oldest_at_ms = store.call('oldestPending', null);
      return { pending: store.counts().pending, oldest_at_ms };
    },
    async prune() {
      while (store.call('isPruneDue', null) && store.call('prune', null).more);
    },
    restart: () => writerOutbox(clock, leftBehind(state_dir)),
    advance: (by_ms) => clock.advance(by_ms),
  };
}

/** The sandbox's engine as the daemon has it: the client in this thread, the writer in its own, on the real clock. */
export async function clientOutbox(state_dir = join(scratchFolder(), 'state')): Promise<OutboxUnderTest> {
  const onFault = (error: Error) => {
    throw error;
  };
  const store = await OutboxClient.open({ state_dir, limits: LIMITS }, systemClock, onFault);
  onTestFinished(() => store.close());
  await store.adopt(OWNER);
  return {
    ...PROMISED,
    store,
    append: async (count) =>
      eventIdsOf(await Promise.all(Array.from({ length: count }, () => store.append(eventAppend())))),
    list: (filter) => store.list(filter),
    find: (event_id) => store.find(event_id),
    replay: (event_id) => store.replay(event_id),
    replayAll: (state) => store.replayAll(state),
    discard: async (event_id) => (await store.discard(event_id)) === 'discarded',
    discardAll: (state) => store.discardAll(state),
    async counts() {
      const oldest_at_ms = await store.oldestPending();
      return { pending: store.counts().pending, oldest_at_ms };
    },
    async prune() {
      while ((await store.isPruneDue()) && (await store.prune()).more);
    },
    restart: () => clientOutbox(leftBehind(state_dir)),
    async advance() {
      throw new Error("the machine's clock cannot be moved");
    },
  };
}

function eventAppend(): Append {
  return { drafts: [draft()] };
}
