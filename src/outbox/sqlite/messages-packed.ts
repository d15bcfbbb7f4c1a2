import { Buffer } from 'node:buffer';
import type { Append, AppendResult, AttemptOutcome, EventDraft, LoadedRecord, TreeChange } from '../store.ts';
import type { Batch, BatchDone, FromWriter, ToWriterThread } from './messages.ts';

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

/** The buffers to transfer with a message instead of copying them. */
export function transferOf(message: PackedFromWriter): ArrayBuffer[] {
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

function holdsRecords(output: unknown): output is { records: LoadedRecord[] } {
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

/** The numbers of an outcome: what is null in nearly all of them is marked as missing instead. */
const OUTCOME_FIELDS = 9;
const STATES = ['pending', 'delivered', 'failed', 'expired'] as const;
const ERROR = 1;
const ERROR_DETAIL = 2;
const RESPONSE_BODY = 4;
const STATUS = 8;

/** Outcomes as numbers, which are copied as one piece of memory, and those of their texts that are not null. */
interface PackedOutcomes {
  numbers: Float64Array;
  texts: string[];
}

/** Packs outcomes. */
function packOutcomes(outcomes: readonly AttemptOutcome[]): PackedOutcomes {
  const numbers = new Float64Array(outcomes.length * OUTCOME_FIELDS);
  const texts: string[] = [];
  outcomes.forEach((outcome, i) => {
    const { status, error, error_detail, response_body, decision } = outcome;
    const at = i * OUTCOME_FIELDS;
    numbers[at] = outcome.id;
    numbers[at + 1] = outcome.attempt;
    numbers[at + 2] = outcome.started_at_ms;
    numbers[at + 3] = outcome.duration_ms;
    numbers[at + 4] = status ?? 0;
    numbers[at + 5] = STATES.indexOf(decision.state);
    if (decision.state === 'pending') {
      numbers[at + 6] = decision.due_ms;
      numbers[at + 7] = decision.probe_ms;
    }
    numbers[at + 8] =
      (error === null ? 0 : ERROR) |
      (error_detail === null ? 0 : ERROR_DETAIL) |
      (response_body === null ? 0 : RESPONSE_BODY) |
      (status === null ? 0 : STATUS);
    for (const text of [error, error_detail, response_body]) if (text !== null) texts.push(text);
  });
  return { numbers, texts };
}

/** The outcomes of `packOutcomes`. */
function unpackOutcomes({ numbers, texts }: PackedOutcomes): AttemptOutcome[] {
  let next_text = 0;
  return Array.from({ length: numbers.length / OUTCOME_FIELDS }, (_, i) => {
    const number = (field: number) => numbers[i * OUTCOME_FIELDS + field] as number;
    const present = number(8);
    const text = <Text extends string>(flag: number) =>
      (present & flag) === 0 ? null : (texts[next_text++] as Text);
    const state = STATES[number(5)] as (typeof STATES)[number];
    return {
      id: number(0),
      attempt: number(1),
      started_at_ms: number(2),
      duration_ms: number(3),
      status: (present & STATUS) === 0 ? null : number(4),
      error: text(ERROR),
      error_detail: text(ERROR_DETAIL),
      response_body: text(RESPONSE_BODY),
      decision: state === 'pending' ? { state, due_ms: number(6), probe_ms: number(7) } : { state },
    };
  });
}

/** The numbers of a record; the last four are where its texts end. */
const RECORD_FIELDS = 11;
const RECORD_TEXTS = 4;
const FIRST_END = RECORD_FIELDS - RECORD_TEXTS;
const SEPARATOR = '\n';

/**
 * Records in one piece of memory, which is handed from thread to thread without a copy: the numbers of all of them, then
 * their texts. As objects and strings, thousands of records that wait for their attempts would be copied by each garbage
 * collection.
 */
interface PackedRecords {
  count: number;
  memory: ArrayBuffer;
  /** The names of headers: nearly all records have the same ones. */
  names: string[][];
}

/** Packs records. Values of headers have no line break: see `parsedHeaders`. */
function packRecords(records: readonly LoadedRecord[]): PackedRecords {
  const names: string[][] = [];
  const texts: string[] = [];
  const numbers = records.map((record) => {
    const { id, event_id, event_type, headers, body, attempts, failures } = record;
    const own = Object.keys(headers);
    if (!isSame(own, names.at(-1))) names.push(own);
    texts.push(event_id, event_type, Object.values(headers).join(SEPARATOR), body.toString());
    return [
      id,
      attempts,
      failures,
      record.deadline_ms,
      record.probe_ms,
      record.created_at_ms,
      names.length - 1,
    ];
  });
  const begin = records.length * RECORD_FIELDS * Float64Array.BYTES_PER_ELEMENT;
  const length = texts.reduce((sum, text) => sum + Buffer.byteLength(text), begin);
  const memory = new ArrayBuffer(length);
  const bytes = Buffer.from(memory);
  const fields = new Float64Array(memory, 0, records.length * RECORD_FIELDS);
  let end = begin;
  numbers.forEach((own, i) => {
    fields.set(own, i * RECORD_FIELDS);
    for (let text = 0; text < RECORD_TEXTS; text++) {
      end += bytes.write(texts[i * RECORD_TEXTS + text] as string, end);
      fields[i * RECORD_FIELDS + FIRST_END + text] = end;
    }
  });
  return { count: records.length, memory, names };
}

/** The records of `packRecords`. */
function unpackRecords({ count, memory, names }: PackedRecords): LoadedRecord[] {
  const begin = count * RECORD_FIELDS * Float64Array.BYTES_PER_ELEMENT;
  const packed = {
    names,
    begin,
    bytes: Buffer.from(memory),
    fields: new Float64Array(memory, 0, count * RECORD_FIELDS),
  };
  return Array.from({ length: count }, (_, i) => new PackedRecord(packed, i * RECORD_FIELDS));
}

/** The memory of packed records; their texts begin at `begin`. */
interface Memory {
  names: readonly string[][];
  begin: number;
  bytes: Buffer;
  fields: Float64Array;
}

/** One record, read from the memory when it is asked for. */
class PackedRecord implements LoadedRecord {
  readonly #memory: Memory;
  readonly #at: number;

  constructor(memory: Memory, at: number) {
    this.#memory = memory;
    this.#at = at;
  }

  get id(): number {
    return this.#number(0);
  }

  get attempts(): number {
    return this.#number(1);
  }

  get failures(): number {
    return this.#number(2);
  }

  get deadline_ms(): number {
    return this.#number(3);
  }

  get probe_ms(): number {
    return this.#number(4);
  }

  get created_at_ms(): number {
    return this.#number(5);
  }

  get event_id(): string {
    return this.#text(0).toString();
  }

  get event_type(): string {
    return this.#text(1).toString();
  }

  get headers(): Record<string, string> {
    const values = this.#text(2).toString().split(SEPARATOR);
    const headers: Record<string, string> = {};
    (this.#memory.names[this.#number(6)] as string[]).forEach((name, i) => {
      headers[name] = values[i] as string;
    });
    return headers;
  }

  get body(): Buffer {
    return this.#text(3);
  }

  get body_bytes(): number {
    return this.#end(3) - this.#end(2);
  }

  #number(field: number): number {
    return this.#memory.fields[this.#at + field] as number;
  }

  #end(text: number): number {
    return this.#number(FIRST_END + text);
  }

  #text(text: number): Buffer {
    const { begin, bytes } = this.#memory;
    // A record begins where the one before it ends.
    const start = text > 0 ? this.#end(text - 1) : this.#at > 0 ? this.#number(-1) : begin;
    return bytes.subarray(start, this.#end(text));
  }
}

function isSame(names: string[], others: string[] | undefined): boolean {
  return others?.length === names.length && names.every((name, i) => name === others[i]);
}
