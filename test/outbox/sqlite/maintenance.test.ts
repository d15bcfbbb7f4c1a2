import { statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { batch, delivered, lastDone, one, openWriterHere } from '../../support/outbox/writer.ts';

const HOUR_MS = 60 * 60 * 1000;

describe('pruning', () => {
  it('removes delivered records after an hour or beyond 10 000, failed ones after 7 days, and gives space back', async () => {
    const { writer, replies, call, clock, files } = openWriterHere();
    files.db.pragma('synchronous = OFF');
    const payload = `{"text":"${'x'.repeat(2_000)}"}`;
    const ids = Array.from({ length: 2_000 }, (_, i) => i + 1);
    writer.handle([
      batch(
        1,
        ids.map(() => one(payload)),
      ),
    ]);
    writer.handle([batch(2, [], ids.slice(1).map(delivered))]);
    writer.handle([batch(3, [], [{ ...delivered(1), status: 404, decision: { state: 'failed' } }])]);
    call('checkpoint', null);
    const size_bytes = () => statSync(files.db.name).size;
    const full_bytes = size_bytes();
    const prune = () => {
      for (;;) {
        const { output, error } = call('prune', null);
        expect(error).toBeNull();
        if (!(output as { more: boolean }).more) return;
      }
    };
    prune();
    expect(lastDone(replies).counts?.delivered).toBe(1_999);
    await clock.advance(HOUR_MS);
    prune();
    call('checkpoint', null);
    expect(size_bytes()).toBeLessThan(full_bytes / 10);
    const { counts } = call('prune', null);
    expect(counts).toMatchObject({ delivered: 0, failed: 1 });
    await clock.advance(7 * 24 * HOUR_MS);
    prune();
    expect(call('prune', null).counts).toMatchObject({ failed: 0 });
  });
});

describe('free space', () => {
  it('is left to the next records while those come, and given back soon after', async () => {
    const { writer, call, clock, files } = openWriterHere();
    files.db.pragma('synchronous = OFF');
    const ids = Array.from({ length: 500 }, (_, i) => i + 1);
    const large = `{"text":"${'x'.repeat(2_000)}"}`;
    const appends = ids.map(() => one(large));
    writer.handle([batch(1, appends)]);
    writer.handle([batch(2, [], ids.map(delivered))]);
    await clock.advance(HOUR_MS);
    writer.handle([batch(3, [one()])]);
    const free_pages = () => files.db.pragma('freelist_count', { simple: true });
    expect(call('prune', null).output).toEqual({ more: false });
    expect(free_pages()).toBeGreaterThan(100);
    expect(call('isPruneDue', null).output).toBe(false);
    await clock.advance(5_000);
    expect(call('isPruneDue', null).output).toBe(true);
    expect(call('prune', null).output).toEqual({ more: true });
    expect(call('prune', null).output).toEqual({ more: false });
    expect(free_pages()).toBe(0);
  });
});
