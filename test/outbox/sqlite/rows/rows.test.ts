import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checksumOf,
  dueRecord,
  isWhole,
  type RecordRow,
  recordSizeBytes,
} from '../../../../src/outbox/sqlite/rows/rows.ts';

const text = fc.string({ unit: 'binary' });

const ROW: RecordRow = {
  id: 3,
  event_id: 'evt_1',
  event_type: 'agent.event',
  sandbox_id: 'sb-1',
  sequence: 3,
  headers: '{"ce-id":"evt_1"}',
  body: '{}',
  checksum: 0,
  mac: null,
  attempts: 1,
  failures: 1,
  deadline_ms: 10,
  probe_ms: 5,
  created_at_ms: 1,
  due_ms: 4,
};

describe('the checksum of a record', () => {
  it('is the CRC-32 of its bytes, headers first', () => {
    fc.assert(
      fc.property(text, text, (headers, body) => {
        expect(checksumOf(headers, body)).toBe(crc32(Buffer.from(headers + body)));
      }),
    );
  });

  it('finds every record that is not as it was stored, of whatever type its columns are', () => {
    fc.assert(
      fc.property(text, text, fc.anything(), (headers, body, other) => {
        const checksum = checksumOf(headers, body);
        expect(isWhole({ headers, body, checksum })).toBe(true);
        expect(isWhole({ headers, body: `${body}x`, checksum })).toBe(false);
        if (typeof other === 'string') return;
        expect(isWhole({ headers: other, body, checksum })).toBe(false);
        expect(isWhole({ headers, body: other, checksum })).toBe(false);
      }),
    );
  });
});

describe('a record that is due', () => {
  it('has its headers as an object, and none of the columns that only the store needs', () => {
    expect(dueRecord(ROW)).toEqual({
      id: 3,
      event_id: 'evt_1',
      event_type: 'agent.event',
      headers: { 'ce-id': 'evt_1' },
      body: '{}',
      body_bytes: 2,
      attempts: 1,
      failures: 1,
      deadline_ms: 10,
      probe_ms: 5,
      created_at_ms: 1,
    });
  });

  it.each(['', 'null', '"text"', '{"a":1}', '{"a":null}', '{', '{"a":"b\\nc: d"}'])(
    'is none where its headers are %j and not an object of lines of text',
    (headers) => {
      expect(dueRecord({ ...ROW, headers })).toBeNull();
    },
  );
});

describe('the size of a record', () => {
  it('counts the bytes of its body, and more for its rows', () => {
    const ascii = recordSizeBytes('{}', 'aaaa');
    expect(recordSizeBytes('{}', 'aaaaa') - ascii).toBe(1);
    expect(recordSizeBytes('{}', 'aaa🦊') - ascii).toBe(3);
    expect(ascii).toBeGreaterThan(6);
  });
});
