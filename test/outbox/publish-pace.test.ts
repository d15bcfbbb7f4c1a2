import { describe, expect, it } from 'vitest';
import { PublishPace } from '../../src/outbox/publish-pace.ts';

/** Attempts that have ended in one turn. */
function ended(pace: PublishPace, count: number, duration_ms: number): void {
  for (let i = 0; i < count; i++) pace.note(duration_ms);
}

describe('the pace of publishes', () => {
  it('is theirs while the delivery keeps up', () => {
    const pace = new PublishPace(16);
    ended(pace, 3, 1);
    expect(pace.take(500, false)).toBe(500);
  });

  it('is that of a quick consumer while the delivery is behind, in each turn anew', () => {
    const pace = new PublishPace(16);
    ended(pace, 12, 1);
    expect(pace.take(500, true)).toBe(12);
    ended(pace, 7, 1);
    expect(pace.take(500, true)).toBe(7);
  });

  it('never comes to a stop', () => {
    expect(new PublishPace(16).take(500, true)).toBe(4);
    expect(new PublishPace(1).take(500, true)).toBe(1);
  });

  it('is not that of a consumer that takes its time, until it is quick again', () => {
    const pace = new PublishPace(16);
    ended(pace, 100, 20);
    expect(pace.take(500, true)).toBe(24);
    expect(pace.take(500, true)).toBe(24);
    ended(pace, 100, 1);
    expect(pace.take(500, true)).toBe(100);
    expect(pace.take(500, true)).toBe(4);
  });
});
