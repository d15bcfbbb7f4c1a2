import { Buffer } from 'node:buffer';
import type { DueRecord } from '../store.ts';

/** The numbers of a record; the last four are where its texts end. */
const FIELDS = 11;
const TEXTS = 4;
const FIRST_END = FIELDS - TEXTS;
const SEPARATOR = '\n';

/**
 * Records in one piece of memory, which is handed from thread to thread without a copy: the numbers of all of them, then
 * their texts. As objects and strings, thousands of records that wait for their attempts would be copied by each garbage
 * collection.
 */
export interface PackedRecords {
  count: number;
  memory: ArrayBuffer;
  /** The names of headers: nearly all records have the same ones. */
  names: string[][];
}

/** Packs records. Values of headers have no line break: see `parsedHeaders`. */
export function packRecords(records: readonly DueRecord[]): PackedRecords {
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
  const begin = records.length * FIELDS * Float64Array.BYTES_PER_ELEMENT;
  const length = texts.reduce((sum, text) => sum + Buffer.byteLength(text), begin);
  const memory = new ArrayBuffer(length);
  const bytes = Buffer.from(memory);
  const fields = new Float64Array(memory, 0, records.length * FIELDS);
  let end = begin;
  numbers.forEach((own, i) => {
    fields.set(own, i * FIELDS);
    for (let text = 0; text < TEXTS; text++) {
      end += bytes.write(texts[i * TEXTS + text] as string, end);
      fields[i * FIELDS + FIRST_END + text] = end;
    }
  });
  return { count: records.length, memory, names };
}

/** The records of `packRecords`. */
export function unpackRecords({ count, memory, names }: PackedRecords): DueRecord[] {
  const begin = count * FIELDS * Float64Array.BYTES_PER_ELEMENT;
  const packed = {
    names,
    begin,
    bytes: Buffer.from(memory),
    fields: new Float64Array(memory, 0, count * FIELDS),
  };
  return Array.from({ length: count }, (_, i) => new PackedRecord(packed, i * FIELDS));
}

/** The memory of packed records; their texts begin at `begin`. */
interface Memory {
  names: readonly string[][];
  begin: number;
  bytes: Buffer;
  fields: Float64Array;
}

/** One record, read from the memory when it is asked for. */
class PackedRecord implements DueRecord {
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
