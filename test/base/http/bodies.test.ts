import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { Bodies } from '../../../src/base/http/bodies.ts';
import { BODIES_MAX_BYTES, BODY_MAX_BYTES, SMALL_BODY_BYTES } from '../../../src/contract/defaults.ts';
import { eventually } from '../../support/eventually.ts';

/** A body under way, and what it came to. */
function begin(bodies: Bodies, length?: number) {
  const request = Object.assign(new PassThrough(), {
    headers: length === undefined ? {} : { 'content-length': String(length) },
  });
  const body = {
    request,
    error: undefined as (Error & { code?: string }) | null | undefined,
    bytes: Buffer.alloc(0),
  };
  bodies.read(request as unknown as IncomingMessage, (error, bytes) => Object.assign(body, { error, bytes }));
  return body;
}

const drained = () => new Promise((resolve) => setImmediate(resolve));

it('is whole however it is cut', async () => {
  const bodies = new Bodies();
  const text = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251));
  for (const piece of [1_000, 65_536, 300_000]) {
    const body = begin(bodies);
    for (let at = 0; at < text.length; at += piece) body.request.write(text.subarray(at, at + piece));
    body.request.end();
    await eventually(() => expect(body.error).toBe(null));
    expect(body.bytes.equals(text)).toBe(true);
  }
  expect(bodies.bytes).toBe(0);
});

it('of one byte a piece holds no more than twice its bytes', async () => {
  const bodies = new Bodies();
  const body = begin(bodies);
  for (let i = 0; i < 2 * SMALL_BODY_BYTES; i++) body.request.emit('data', Buffer.of(7));
  expect(bodies.bytes).toBeGreaterThan(0);
  expect(bodies.bytes).toBeLessThanOrEqual(4 * SMALL_BODY_BYTES);
});

it('that is too long is refused before it is kept, by its length or by its bytes', async () => {
  const bodies = new Bodies();
  expect(begin(bodies, BODY_MAX_BYTES + 1).error?.code).toBe('payload_too_large');
  const body = begin(bodies);
  for (let i = 0; i < 17; i++) body.request.emit('data', Buffer.alloc(SMALL_BODY_BYTES));
  expect(body.error?.code).toBe('payload_too_large');
  expect(bodies.bytes).toBe(0);
});

it('that has taken longest goes first where all together hold too much; an honest one finds room at once', async () => {
  const bodies = new Bodies();
  const stuck = Array.from({ length: 200 }, () => begin(bodies));
  for (const { request } of stuck) request.emit('data', Buffer.alloc(BODY_MAX_BYTES - 1));
  expect(bodies.bytes).toBeLessThanOrEqual(BODIES_MAX_BYTES);
  const kept = stuck.filter(({ error }) => error === undefined);
  expect(stuck.indexOf(kept[0] as (typeof stuck)[number])).toBe(200 - kept.length);
  expect(stuck[0]?.error?.code).toBe('unavailable');
  const honest = begin(bodies);
  honest.request.end(Buffer.alloc(BODY_MAX_BYTES));
  await eventually(() => expect(honest.error).toBe(null));
  expect(bodies.bytes).toBeLessThanOrEqual(BODIES_MAX_BYTES);
});

it('that is small is never in the way, and finds room', async () => {
  const bodies = new Bodies(BODY_MAX_BYTES);
  const small = Array.from({ length: 100 }, () => begin(bodies));
  for (const { request } of small) request.emit('data', Buffer.alloc(SMALL_BODY_BYTES));
  begin(bodies).request.emit('data', Buffer.alloc(BODY_MAX_BYTES));
  expect(bodies.bytes).toBe(BODY_MAX_BYTES);
  for (const { request } of small) request.end();
  await drained();
  expect(small.every(({ error }) => error === null)).toBe(true);
});

it('whose client has gone is forgotten', async () => {
  const bodies = new Bodies();
  const body = begin(bodies);
  body.request.emit('data', Buffer.alloc(BODY_MAX_BYTES / 2));
  expect(bodies.bytes).toBeGreaterThan(0);
  body.request.destroy(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }));
  await eventually(() => expect(body.error?.code).toBe('ECONNRESET'));
  expect(bodies.bytes).toBe(0);
});
