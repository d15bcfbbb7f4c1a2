import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { UnreadAnswers } from '../../../src/base/http/unread-answers.ts';
import { UNREAD_MAX_BYTES } from '../../../src/contract/defaults.ts';

describe('answers that nobody takes', () => {
  /** A part of what they may hold together. */
  const PART = UNREAD_MAX_BYTES / 32;

  /** A connection that has sent `sent` bytes of an answer, of which `waiting` are still here. */
  function connection(sent: number, waiting: number): Socket & { taken: number } {
    const socket = new Socket();
    const state = Object.assign(socket, { taken: sent });
    Object.defineProperty(socket, 'writableLength', { get: () => waiting });
    Object.defineProperty(socket, 'bytesWritten', { get: () => state.taken + waiting });
    return state;
  }

  function looking() {
    let now_ms = 1_000_000;
    const unread = new UnreadAnswers(() => now_ms);
    return (sockets: Socket[]) => {
      now_ms += 2_000;
      for (let i = 0; i < 8; i++) unread.look(sockets);
    };
  }

  it('are cut with their connections, the largest first, once they hold too much', () => {
    const look = looking();
    const [small, large, larger] = [
      connection(5, 10 * PART),
      connection(5, 12 * PART),
      connection(5, 20 * PART),
    ];
    look([small, large, larger]);
    expect([small, large, larger].map(({ destroyed }) => destroyed)).toEqual([false, false, false]);
    look([small, large, larger]);
    expect([small, large, larger].map(({ destroyed }) => destroyed)).toEqual([false, false, true]);
  });

  it('are left while they are taken, however slowly, and while they are small together', () => {
    const look = looking();
    const slow = connection(5, 40 * PART);
    look([slow]);
    slow.taken += 1;
    look([slow]);
    expect(slow.destroyed).toBe(false);
    const few = [connection(5, 10 * PART), connection(5, 20 * PART)];
    const see = looking();
    for (let i = 0; i < 3; i++) see(few);
    expect(few.some(({ destroyed }) => destroyed)).toBe(false);
  });
});
