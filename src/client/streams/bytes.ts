import { SandboxdError } from '../error.ts';

const encoder = new TextEncoder();

/** A piece of output as the programs send it. Contract section 4, GET `/processes/{id}/output`. */
interface Piece {
  stream: 'stdout' | 'stderr';
  offset: number;
  data: string;
  encoding?: 'base64';
}

/** A piece of a process's output; `offset` is that of its first byte in the stream. */
export interface OutputPiece {
  type: 'output';
  stream: 'stdout' | 'stderr';
  offset: number;
  bytes: Uint8Array<ArrayBuffer>;
}

/** What was written from the last piece's end on is no longer kept; `offset` is where the stream goes on. */
export interface OutputGap {
  type: 'gone';
  stream: 'stdout' | 'stderr';
  offset: number;
}

/** Where a reader is in both streams. What it has had is left out, what it misses is said. */
export class OutputPosition {
  readonly #ends = new Map<string, number>();

  /** Up to where both streams have come; null before anything has. */
  get offset(): number | null {
    return this.#ends.size === 0
      ? null
      : Math.min(...['stdout', 'stderr'].map((each) => this.#ends.get(each) ?? 0));
  }

  /** Up to where a stream has come; undefined before anything has. */
  endOf(stream: 'stdout' | 'stderr'): number | undefined {
    return this.#ends.get(stream);
  }

  /** The news of a piece as it was sent: itself, its unknown end, nothing, or a gap before it. */
  take(piece: unknown): Generator<OutputPiece | OutputGap> {
    const { stream, offset, bytes } = pieceOf(piece);
    return this.add(stream, offset, bytes);
  }

  /** The news of bytes of a stream, which may be none: then a gap before them is. */
  *add(
    stream: 'stdout' | 'stderr',
    offset: number,
    bytes: Uint8Array<ArrayBuffer>,
  ): Generator<OutputPiece | OutputGap> {
    const end = this.#ends.get(stream);
    this.#ends.set(stream, Math.max(offset + bytes.length, end ?? 0));
    if (end !== undefined && offset > end) yield { type: 'gone', stream, offset };
    const known_bytes = Math.max(0, (end ?? 0) - offset);
    if (known_bytes >= bytes.length) return;
    yield { type: 'output', stream, offset: offset + known_bytes, bytes: bytes.subarray(known_bytes) };
  }

  /** The gap that the server tells of. */
  gap({ stream, offset }: { stream: 'stdout' | 'stderr'; offset: number }): OutputGap {
    this.#ends.set(stream, offset);
    return { type: 'gone', stream, offset };
  }
}

function pieceOf(piece: unknown) {
  const { stream, offset, data, encoding } = piece as Piece;
  const is_valid = (stream === 'stdout' || stream === 'stderr') && Number.isSafeInteger(offset);
  if (!is_valid || typeof data !== 'string') throw badFrame();
  return { stream, offset, bytes: encoding === 'base64' ? fromBase64(data) : encoder.encode(data) };
}

/** The error of something that is not what the programs send. */
export function badFrame(): SandboxdError {
  return new SandboxdError({ code: 'bad_answer', message: 'the stream has an invalid frame', status: 200 });
}

/** The JSON object in a text; throws `bad_answer` where there is none. */
export function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // The same as another value.
  }
  throw badFrame();
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    const characters = atob(text);
    const bytes = new Uint8Array(characters.length);
    for (let at = 0; at < bytes.length; at++) bytes[at] = characters.charCodeAt(at);
    return bytes;
  } catch {
    throw badFrame();
  }
}

/** Pieces as one. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((bytes, piece) => bytes + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** The bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(text);
}
