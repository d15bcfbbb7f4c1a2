import { connect, type NetConnectOpts, Socket } from 'node:net';
import type { Upgrade } from './listener.ts';

/** What a connection reads into at first: many are idle. */
const PIECE_BYTES_MIN = 4 * 1024;
/** What it grows to where reads fill it: a long transfer in smaller pieces costs much more. */
const PIECE_BYTES_MAX = 128 * 1024;

/** Where the bytes of a connection go, and how many. */
export interface Relayed {
  target: Socket;
  /** Bytes until it is done; what comes after them is dropped. Without it, all until the end. */
  bytes?: number;
  /** Sees what is passed on, before the target does. */
  onBytes?: (bytes: Buffer) => void;
  /** Called once, when the last of `bytes` has been given to the target. */
  onDone?: () => void;
}

const readers = new WeakMap<Socket, Reader>();

/** Connects like `net.connect`: an ordinary stream, whose bytes `relay` can pass on at less cost. */
export function connectRelayed(options: NetConnectOpts): Socket {
  return new Reader(options).socket;
}

/**
 * Passes what arrives on a connection from now on to another one, no faster than that one takes it; memory that was read
 * into is used again, with no stream between. The end is not passed on. Returns false, and changes nothing, for a
 * connection that is not of `connectRelayed`, or that has bytes which its stream's reader did not take yet; and for a target
 * in this program, where bytes may be kept once they are taken.
 */
export function relay(source: Socket, relayed: Relayed): boolean {
  if (!(relayed.target instanceof Socket) || source.readableLength > 0) return false;
  return readers.get(source)?.start(relayed) ?? false;
}

/**
 * Passes bytes both ways between an upgraded connection and another one, until either ends. What the other one has sent
 * before its end still arrives; `onBytes` sees it first.
 */
export function joinUpgrade(
  { socket, head }: Upgrade,
  other: Socket,
  onBytes: (bytes: Buffer) => void = () => {},
): void {
  if (head.length > 0) other.write(head);
  socket.pipe(other);
  if (relay(other, { target: socket, onBytes })) other.once('end', () => socket.end());
  else other.on('data', onBytes).pipe(socket);
  socket.on('error', () => {}); // 'close' follows
  other.on('error', () => {});
  socket.once('close', () => other.destroy());
  other.once('close', () => socket.destroySoon());
}

/** Reads one connection: into its stream, until it is relayed. */
class Reader {
  readonly socket: Socket;
  #piece_bytes = PIECE_BYTES_MIN;
  /** What the next read fills; null if the last one is still in use. */
  #piece: Buffer | null = null;
  /** What the target has not written yet. */
  #pending: Buffer | null = null;
  /** What can be read into instead. */
  #spare: Buffer | null = null;
  #relayed: Relayed | null = null;
  #left = Number.POSITIVE_INFINITY;

  constructor(options: NetConnectOpts) {
    const onread = { buffer: () => this.#next(), callback: (bytes: number) => this.#take(bytes) };
    this.socket = connect({ ...options, onread });
    readers.set(this.socket, this);
  }

  start(relayed: Relayed): boolean {
    if (this.#relayed) return false;
    this.#relayed = relayed;
    this.#left = relayed.bytes ?? Number.POSITIVE_INFINITY;
    this.socket.resume();
    return true;
  }

  /** Memory that nobody uses: what is still to be written is never read into. */
  #next(): Buffer {
    const piece = this.#piece ?? this.#spare;
    if (piece !== this.#piece) this.#spare = null;
    const is_enough = piece !== null && piece.length >= this.#piece_bytes;
    this.#piece = is_enough ? piece : Buffer.allocUnsafeSlow(this.#piece_bytes);
    return this.#piece;
  }

  /** Takes what was read; false stops reading. */
  #take(bytes: number): boolean {
    const piece = this.#piece as Buffer;
    const read = piece.subarray(0, bytes);
    if (bytes === piece.length) this.#piece_bytes = Math.min(2 * bytes, PIECE_BYTES_MAX);
    if (this.#relayed) return this.#pass(piece, read, this.#relayed);
    if (bytes < piece.length / 2) return this.socket.push(Buffer.from(read));
    this.#piece = null;
    return this.socket.push(read);
  }

  #pass(piece: Buffer, read: Buffer, { target, onBytes, onDone }: Relayed): boolean {
    if (this.#left === 0 || !target.writable) return false;
    const bytes = Math.min(read.length, this.#left);
    this.#left -= bytes;
    onBytes?.(read);
    target.write(read.subarray(0, bytes), this.#onWritten);
    if (target.writableLength > 0) {
      this.#pending = piece;
      this.#piece = null;
    }
    if (this.#left > 0) return this.#pending === null;
    onDone?.();
    return false;
  }

  readonly #onWritten = (): void => {
    const target = this.#relayed?.target;
    // Only then has the system taken all of it.
    if (this.#pending === null || !target?.writable || target.writableLength > 0) return;
    this.#spare = this.#pending;
    this.#pending = null;
    if (this.#left > 0) this.socket.resume();
  };
}
