import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeCursor, encodeCursor, START } from '../../../src/manager/database/cursor.ts';

const reader = { database_id: 'db', team_id: 'team_1' };
const position = fc.record({ xid: fc.maxSafeNat(), seq: fc.maxSafeNat() });

describe('a cursor', () => {
  it('leads back to its position, at the start too', () => {
    fc.assert(
      fc.property(position, (at) => {
        expect(decodeCursor(reader, encodeCursor(reader, at))).toEqual(at);
      }),
    );
    expect(decodeCursor(reader, encodeCursor(reader, START))).toEqual(START);
  });

  it('is refused where one character of it is another, is missing or is more', () => {
    fc.assert(
      fc.property(position, fc.nat(31), fc.constantFrom(...'AZaz09-_.=% '), (at, i, other) => {
        const cursor = encodeCursor(reader, at);
        const changed = cursor.slice(0, i) + other + cursor.slice(i + 1);
        if (changed !== cursor) expect(decodeCursor(reader, changed)).toBeNull();
        expect(decodeCursor(reader, cursor.slice(0, i))).toBeNull();
        expect(decodeCursor(reader, cursor + other)).toBeNull();
      }),
    );
  });

  it('is refused to another team, by another database, and by another feed', () => {
    const cursor = encodeCursor(reader, { xid: 1, seq: 2 });
    expect(decodeCursor({ ...reader, team_id: 'team_2' }, cursor)).toBeNull();
    expect(decodeCursor({ ...reader, database_id: 'other' }, cursor)).toBeNull();
    expect(decodeCursor({ ...reader, feed: 'events' }, cursor)).toBeNull();
    expect(decodeCursor(reader, encodeCursor({ ...reader, feed: 'events' }, START))).toBeNull();
    expect(decodeCursor({ database_id: 'd', team_id: 'bteam_1' }, cursor)).toBeNull();
  });
});
