import type { Append, AppendResult, DueRecord, EventDraft, TreeChange } from '../store.ts';
import type { Batch, BatchDone, FromWriter, ToWriterThread } from './messages.ts';
import { type PackedOutcomes, packOutcomes, unpackOutcomes } from './packed-outcomes.ts';
import { type PackedRecords, packRecords, unpackRecords } from './packed-records.ts';

/**
 * What crosses between the threads by the thousand is sent as one flat row of values: copying an object's names costs
 * several times as much as its values. Everything else is sent as it is.
 */
type Row = unknown[];

type PackedBatch = Omit<Batch, 'appends' | 'outcomes'> & { appends: Row; outcomes: PackedOutcomes };
type Done = Extract<FromWriter, { kind: 'done' }>;
type PackedDone = Omit<Done, 'batches' | 'added'> & {
  batches: PackedBatchDone[];
  added: PackedRecords | null;
};
type PackedBatchDone = Omit<BatchDone, 'results'> & { results: Row };

type Answer = Extract<FromWriter, { kind: 'answer' }>;
/** An answer that holds records. */
type PackedRead = { kind: 'read'; answer: Answer; records: PackedRecords };

/** A message to the writer thread in the form in which it is posted. */
export type PackedToThread = Exclude<ToWriterThread, Batch> | PackedBatch;
/** A message of the writer thread in the form in which it is posted. */
export type PackedFromWriter = Exclude<FromWriter, Done> | PackedDone | PackedRead;

/** Packs a message to the writer thread. */
export function packToThread(message: ToWriterThread): PackedToThread {
  if (message.kind !== 'batch') return message;
  const { appends, outcomes } = message;
  return { ...message, appends: pack(appends, putAppend), outcomes: packOutcomes(outcomes) };
}

/** The inverse of `packToThread`. */
export function unpackToThread(message: PackedToThread): ToWriterThread {
  if (message.kind !== 'batch') return message;
  const { appends, outcomes } = message;
  return { ...message, appends: unpack(appends, takeAppend), outcomes: unpackOutcomes(outcomes) };
}

/** Packs a message of the writer thread. */
export function packFromWriter(message: FromWriter): PackedFromWriter {
  if (message.kind === 'answer' && holdsRecords(message.output)) {
    const { records, ...output } = message.output;
    return { kind: 'read', answer: { ...message, output }, records: packRecords(records) };
  }
  if (message.kind !== 'done') return message;
  const batches = message.batches.map((done) => ({ ...done, results: pack(done.results, putResult) }));
  return { ...message, batches, added: message.added && packRecords(message.added) };
}

/** What of a message is given away: the receiver has it without a copy. */
export function memoryOf(message: PackedFromWriter): ArrayBuffer[] {
  if (message.kind === 'read') return [message.records.memory];
  return message.kind === 'done' && message.added ? [message.added.memory] : [];
}

/** The inverse of `packFromWriter`. */
export function unpackFromWriter(message: PackedFromWriter): FromWriter {
  if (message.kind === 'read') {
    const { answer, records } = message;
    return { ...answer, output: { ...(answer.output as object), records: unpackRecords(records) } };
  }
  if (message.kind !== 'done') return message;
  const batches = message.batches.map((done) => ({ ...done, results: unpack(done.results, takeResult) }));
  return { ...message, batches, added: message.added && unpackRecords(message.added) };
}

function holdsRecords(output: unknown): output is { records: DueRecord[] } {
  return typeof output === 'object' && output !== null && 'records' in output;
}

function pack<Value>(values: Value[], put: (row: Row, value: Value) => void): Row {
  const row: Row = [];
  for (const value of values) put(row, value);
  return row;
}

/** A row as it is read, from its beginning. */
class Reader {
  readonly #row: Row;
  #next = 0;

  constructor(row: Row) {
    this.#row = row;
  }

  get has_more(): boolean {
    return this.#next < this.#row.length;
  }

  /** The next value, which is what was put there. */
  take<Value>(): Value {
    return this.#row[this.#next++] as Value;
  }
}

function unpack<Value>(row: Row, take: (reader: Reader) => Value): Value[] {
  const reader = new Reader(row);
  const values: Value[] = [];
  while (reader.has_more) values.push(take(reader));
  return values;
}

function putAppend(row: Row, { drafts, tree, requires }: Append): void {
  row.push(tree, requires, drafts.length);
  for (const draft of drafts) {
    row.push(draft.event_type, draft.happened_at_ms, draft.payload, draft.idempotency_key);
    row.push(draft.unsent, draft.traceparent);
  }
}

function takeAppend(reader: Reader): Append {
  const tree = reader.take<TreeChange | undefined>();
  const requires = reader.take<string | undefined>();
  const drafts: EventDraft[] = [];
  for (let left = reader.take<number>(); left > 0; left--) {
    drafts.push({
      event_type: reader.take(),
      happened_at_ms: reader.take(),
      payload: reader.take(),
      idempotency_key: reader.take(),
      unsent: reader.take(),
      traceparent: reader.take(),
    });
  }
  return { drafts, ...(tree && { tree }), ...(requires !== undefined && { requires }) };
}

function putResult(row: Row, result: AppendResult): void {
  const records = 'records' in result ? result.records : [];
  row.push(result.outcome, records.length);
  for (const { event_id, sequence } of records) row.push(event_id, sequence);
}

function takeResult(reader: Reader): AppendResult {
  const outcome = reader.take<AppendResult['outcome']>();
  const records: { event_id: string; sequence: number }[] = [];
  for (let left = reader.take<number>(); left > 0; left--) {
    records.push({ event_id: reader.take(), sequence: reader.take() });
  }
  return outcome === 'committed' || outcome === 'repeated' ? { outcome, records } : { outcome };
}
