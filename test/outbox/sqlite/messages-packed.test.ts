import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FromWriter, ToWriterThread } from '../../../src/outbox/sqlite/messages.ts';
import {
  packFromWriter,
  packToThread,
  transferOf,
  unpackFromWriter,
  unpackToThread,
} from '../../../src/outbox/sqlite/messages-packed.ts';
import type { Append, AppendResult, AttemptOutcome, LoadedRecord } from '../../../src/outbox/store.ts';

const number = fc.nat();
const text = fc.string({ unit: 'binary' });

const append: fc.Arbitrary<Append> = fc.record(
  {
    drafts: fc.array(
      fc.record(
        {
          event_type: fc.constantFrom('agent.event', 'process.exited'),
          happened_at_ms: number,
          payload: text,
          idempotency_key: text,
          unsent: fc.constant(true as const),
          traceparent: text,
        },
        { requiredKeys: ['event_type', 'happened_at_ms', 'payload'] },
      ),
    ),
    tree: fc.record({
      put: fc.array(fc.record({ id: number, entry: text })),
      drop: fc.array(number),
    }),
    requires: text,
  },
  { requiredKeys: ['drafts'] },
);

const outcome: fc.Arbitrary<AttemptOutcome> = fc.record({
  id: number,
  attempt: number,
  started_at_ms: number,
  duration_ms: fc.double({ noNaN: true }),
  status: fc.option(number),
  error: fc.option(fc.constantFrom('timeout', 'dns')),
  error_detail: fc.option(text),
  response_body: fc.option(text),
  decision: fc.oneof(
    fc.record({ state: fc.constantFrom('delivered', 'failed', 'expired') }),
    fc.record({ state: fc.constant('pending'), due_ms: number, probe_ms: number }),
  ),
});

const result: fc.Arbitrary<AppendResult> = fc.oneof(
  fc.record({
    outcome: fc.constantFrom('committed', 'repeated'),
    records: fc.array(fc.record({ event_id: text, sequence: number })),
  }),
  fc.record({ outcome: fc.constantFrom('conflict', 'full', 'unavailable', 'unneeded') }),
);

/** Without halves of characters, which SQLite does not give back, and line breaks, which no header has. */
const written = fc.string({ unit: 'grapheme' });
const line = written.filter((value) => !value.includes('\n'));

const record: fc.Arbitrary<LoadedRecord> = fc
  .record({
    id: number,
    event_id: written,
    event_type: written,
    headers: fc.oneof(
      fc.record({ 'ce-id': line, 'ce-type': line }),
      fc.record({ 'ce-type': line }),
      fc.dictionary(fc.stringMatching(/^[a-z-]{1,20}$/), line),
    ),
    body: written,
    attempts: number,
    failures: number,
    deadline_ms: number,
    probe_ms: number,
    created_at_ms: number,
  })
  .map((each) => ({ ...each, body_bytes: Buffer.byteLength(each.body) }));

/** All of a record that is read from its memory when it is asked for. */
function read(each: LoadedRecord): LoadedRecord {
  const { id, event_id, event_type, headers, body, body_bytes } = each;
  const { attempts, failures, deadline_ms, probe_ms, created_at_ms } = each;
  return {
    id,
    event_id,
    event_type,
    headers,
    body: body.toString(),
    body_bytes,
    attempts,
    failures,
    deadline_ms,
    probe_ms,
    created_at_ms,
  };
}

const counts = { pending: 1, delivered: 2, failed: 3, expired: 4, foreign: 5, bytes: 6 };

/** What comes out at the other end of a channel between threads; `given` is what is given away with it. */
function sent<Message>(message: Message, given: ArrayBuffer[] = []): Message {
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(message, given);
  const { message: received } = receiveMessageOnPort(port2) as { message: Message };
  port1.close();
  return received;
}

describe('messages between the threads', () => {
  it('to the writer arrive as they were', () => {
    fc.assert(
      fc.property(fc.array(append), fc.array(outcome), (appends, outcomes) => {
        const message: ToWriterThread = { kind: 'batch', batch: 7, appends, outcomes, wants_records: true };
        expect(unpackToThread(sent(packToThread(message)))).toEqual(message);
      }),
    );
  });

  it('from the writer arrive as they were, with every header in its place', () => {
    fc.assert(
      fc.property(fc.array(result), fc.option(fc.array(record)), (results, added) => {
        const batches = [{ batch: 7, results, is_recorded: false }];
        const message: FromWriter = {
          kind: 'done',
          batches,
          counts,
          added,
          dropped: 3,
          trouble: null,
          commit_ms: 1.5,
        };
        const packed = packFromWriter(message);
        const received = unpackFromWriter(sent(packed, transferOf(packed)));
        if (received.kind !== 'done') throw new Error(received.kind);
        const { added: told = null, ...rest } = received;
        expect({ ...rest, added: told?.map(read) ?? null }).toEqual(message);
        const headers = (records: LoadedRecord[] | null) =>
          records?.map((each) => Object.entries(each.headers));
        expect(headers(told)).toEqual(headers(added));
      }),
    );
  });

  it('with an answer arrive as they were, records or not', () => {
    const answer = { kind: 'answer' as const, call: 3, counts, error: null };
    fc.assert(
      fc.property(fc.array(record), fc.boolean(), (records, more) => {
        const packed = packFromWriter({ ...answer, output: { records, more } });
        const received = unpackFromWriter(sent(packed, transferOf(packed))) as typeof answer & {
          output: { records: LoadedRecord[] };
        };
        const output = { ...received.output, records: received.output.records.map(read) };
        expect({ ...received, output }).toEqual({ ...answer, output: { records, more } });
      }),
    );
    for (const output of [null, true, 12, { more: false }]) {
      const message: FromWriter = { ...answer, output };
      expect(unpackFromWriter(sent(packFromWriter(message)))).toEqual(message);
    }
  });
});
