import { createHash } from 'node:crypto';

/** A position in the commit order of a table's rows: after a row, or 0 and 0 at the start. */
export interface Position {
  xid: number;
  seq: number;
}

/** The reader that a cursor belongs to; a cursor of another reader is refused. */
export interface CursorReader {
  /** The database that numbered the rows. */
  database_id: string;
  team_id: string;
  /** What is read; absent: usage windows. */
  feed?: 'events';
}

/** The position before the first row. */
export const START: Position = { xid: 0, seq: 0 };

const CHECK_BYTES = 8;
const SHAPE = /^[A-Za-z0-9_-]{32}$/;

/** The opaque cursor of a position: 32 characters of base64url. It is not secret; the checksum only detects damage and mistakes. */
export function encodeCursor(reader: CursorReader, { xid, seq }: Position): string {
  const place = Buffer.alloc(16);
  place.writeBigUInt64BE(BigInt(xid), 0);
  place.writeBigUInt64BE(BigInt(seq), 8);
  return Buffer.concat([place, check(reader, place)]).toString('base64url');
}

/** The position of a cursor; null if it is damaged or belongs to another reader. */
export function decodeCursor(reader: CursorReader, cursor: string): Position | null {
  if (!SHAPE.test(cursor)) return null;
  const bytes = Buffer.from(cursor, 'base64url');
  const place = bytes.subarray(0, 16);
  if (!check(reader, place).equals(bytes.subarray(16))) return null;
  return { xid: Number(place.readBigUInt64BE(0)), seq: Number(place.readBigUInt64BE(8)) };
}

function check({ database_id, team_id, feed }: CursorReader, place: Buffer): Buffer {
  const hash = createHash('sha256')
    .update(JSON.stringify([database_id, team_id, ...(feed ? [feed] : [])]))
    .update(place);
  return hash.digest().subarray(0, CHECK_BYTES);
}
