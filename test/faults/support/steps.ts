import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { Received } from './hostile-receiver.ts';

/** A request that waits for what the receiver makes of it. */
export interface Exchange {
  socket: Socket;
  request: Received;
  /** Notes the status, before its first byte is sent. */
  answering: (code: number) => void;
}

export type Step = (exchange: Exchange) => void;

export interface StatusOptions {
  headers?: Record<string, string>;
  body?: string;
  delay_ms?: number;
}

/** Answers with a status. */
export function status(code: number, { headers = {}, body = '', delay_ms = 0 }: StatusOptions = {}): Step {
  const extra = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const text = `HTTP/1.1 ${code} X\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${extra.join('')}\r\n${body}`;
  return ({ socket, answering }) => {
    const answer = () => {
      if (socket.destroyed) return;
      answering(code);
      socket.write(text);
    };
    if (delay_ms === 0) answer();
    else setTimeout(answer, delay_ms);
  };
}

/** `step`, so many times. */
export function times(count: number, step: Step): Step[] {
  return Array.from({ length: count }, () => step);
}

/** Sends exactly these bytes, and notes `code` where they hold a status. */
export function bytes(
  text: string | Buffer,
  code: number | null = null,
  then: 'stay' | 'end' | 'reset' = 'stay',
): Step {
  return ({ socket, answering }) => {
    if (code !== null) answering(code);
    socket.write(text, () => {
      if (then === 'end') socket.end();
      if (then === 'reset') setTimeout(() => socket.resetAndDestroy(), 30);
    });
  };
}

/** Never answers. */
export const hang: Step = () => {};

/** Cuts the connection once the request was read. */
export const reset: Step = ({ socket }) => socket.resetAndDestroy();

/** Closes without an answer. */
export const close: Step = ({ socket }) => void socket.end();

const HEAD = 'HTTP/1.1 200 OK\r\n';

/** A whole head, then silence where the body should be. */
export const headersOnly = bytes(`${HEAD}Content-Length: 100\r\n\r\n`, 200);

/** A whole head, then a body without an end, `every_ms` a piece of `size` bytes. */
export function endless(size: number, every_ms: number): Step {
  return ({ socket, answering }) => {
    answering(200);
    socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
    const piece = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`;
    const timer = setInterval(() => socket.writable && socket.write(piece), every_ms);
    socket.once('close', () => clearInterval(timer));
  };
}

/** A body of a declared length, a byte at a time. */
export function drip(length: number, every_ms: number): Step {
  return ({ socket, answering }) => {
    answering(200);
    socket.write(`${HEAD}Content-Length: ${length}\r\n\r\n`);
    const timer = setInterval(() => socket.writable && socket.write('x'), every_ms);
    socket.once('close', () => clearInterval(timer));
  };
}

/** The status line itself a byte at a time, and never finished. */
export function dripHead(every_ms: number): Step {
  return ({ socket }) => {
    const text = `${HEAD}${'X-Slow: y\r\n'.repeat(10_000)}`;
    let sent = 0;
    const timer = setInterval(() => socket.writable && socket.write(text.charAt(sent++)), every_ms);
    socket.once('close', () => clearInterval(timer));
  };
}

/** Interim answers without an end. */
export function infoFlood(code: number, every_ms: number): Step {
  return ({ socket }) => {
    const timer = setInterval(() => socket.writable && socket.write(`HTTP/1.1 ${code} X\r\n\r\n`), every_ms);
    socket.once('close', () => clearInterval(timer));
  };
}

/** A large body, as fast as it is read. */
export function large(mebibytes: number): Step {
  const piece = Buffer.alloc(1024 * 1024, 'x');
  return ({ socket, answering }) => {
    answering(200);
    socket.write(`${HEAD}Content-Length: ${mebibytes * piece.length}\r\n\r\n`);
    let left = mebibytes;
    const more = () => {
      while (left > 0 && socket.writable && socket.write(piece)) left -= 1;
      if (left > 0 && !socket.destroyed) socket.once('drain', more);
    };
    more();
  };
}

/** A small body that would unpack to a large one. */
export function bomb(mebibytes: number): Step {
  const packed = gzipSync(Buffer.alloc(mebibytes * 1024 * 1024), { level: 9 });
  const head = `${HEAD}Content-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n\r\n`;
  return bytes(Buffer.concat([Buffer.from(head), packed]), 200);
}

/** A good answer on a connection that is then closed `after_ms` later, as if just when it is used again. */
export function keepAliveRace(how: 'end' | 'reset', after_ms: number): Step {
  return ({ socket, answering }) => {
    answering(200);
    socket.write(`${HEAD}Content-Length: 0\r\nConnection: keep-alive\r\n\r\n`);
    setTimeout(() => (how === 'end' ? socket.end() : socket.resetAndDestroy()), after_ms);
  };
}
