import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join as joinPath } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { join } from '../../../src/runtime/egress/connect-server.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** Two connected sockets. */
async function pair(): Promise<[Socket, Socket]> {
  const path = joinPath(scratchFolder(), 'socket');
  const server = createServer({ allowHalfOpen: true });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const accepted = once(server, 'connection');
  const ours = connect({ path, allowHalfOpen: true });
  const [theirs] = (await accepted) as [Socket];
  for (const socket of [ours, theirs]) socket.on('error', () => {});
  onTestFinished(() => {
    ours.destroy();
    theirs.destroy();
    server.close();
  });
  return [ours, theirs];
}

async function joined() {
  const clock = new ManualClock();
  const [[left, one], [right, other]] = [await pair(), await pair()];
  join(clock, one, other);
  const seen = { left: '', right: '', ended: [] as string[] };
  left.setEncoding('latin1').on('data', (text) => (seen.left += text));
  right.setEncoding('latin1').on('data', (text) => (seen.right += text));
  left.once('end', () => seen.ended.push('left'));
  right.once('end', () => seen.ended.push('right'));
  return { clock, left, right, one, other, seen };
}

describe('two joined streams', () => {
  it('pass on the end of one direction, and the other goes on', async () => {
    const { clock, left, right, one, other, seen } = await joined();
    right.end('the answer');
    await eventually(() => expect([seen.left, seen.ended]).toEqual(['the answer', ['left']]));
    left.end('more');
    await eventually(() => expect([seen.right, seen.ended]).toEqual(['more', ['left', 'right']]));
    await eventually(() => expect([one.closed, other.closed]).toEqual([true, true]));
    expect(clock.timers).toBe(0);
  });

  it('are closed 15 s after one direction has ended', async () => {
    const { clock, left, one, other, seen } = await joined();
    left.end();
    await eventually(() => expect(seen.ended).toEqual(['right']));
    await clock.advance(14_999);
    expect([one.closed, other.closed]).toEqual([false, false]);
    await clock.advance(1);
    await eventually(() => expect([one.closed, other.closed]).toEqual([true, true]));
  });

  it('are closed together when one breaks, or is closed already', async () => {
    const { clock, left, one, other } = await joined();
    one.destroy(new Error('broken'));
    await eventually(() => expect([left.readableEnded, other.closed]).toEqual([true, true]));
    expect(clock.timers).toBe(0);
    const [[, closed], [, open]] = [await pair(), await pair()];
    closed.destroy();
    join(clock, closed, open);
    await eventually(() => expect(open.closed).toBe(true));
    expect(clock.timers).toBe(0);
  });
});
