import { readFileSync, statSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import type { OutboxFiles } from '../../../src/outbox/sqlite/files/outbox-files.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { batch, fillDisk, large, lastDone, one, openWriterHere } from '../../support/outbox/writer.ts';

describe('the log', () => {
  const database_bytes = ({ db }: OutboxFiles) => statSync(db.name).size;
  const part = (number: number) => batch(number, Array.from({ length: 10 }, large));

  /** Commits so many parts of about 200 kB each. */
  function grow({ writer, files }: ReturnType<typeof openWriterHere>, parts: number) {
    const before = database_bytes(files);
    for (let n = 1; n <= parts; n++) writer.handle([part(n)]);
    return database_bytes(files) - before;
  }

  it('is written back when nothing waits', () => {
    const opened = openWriterHere();
    expect(grow(opened, 2)).toBe(0);
    expect(opened.writer.is_write_back_due).toBe(false);
    expect(grow(opened, 5)).toBe(0);
    expect(opened.writer.is_write_back_due).toBe(true);
    const before = database_bytes(opened.files);
    opened.writer.writeBack();
    expect(database_bytes(opened.files) - before).toBeGreaterThan(1_000_000);
    expect(opened.writer.is_write_back_due).toBe(false);
  });

  it('has begun anew before the next commit, which then has one sync', async () => {
    const opened = openWriterHere();
    grow(opened, 6);
    opened.writer.stop();
    await opened.clock.advance(1);
    const salts = () => readFileSync(`${opened.files.db.name}-wal`).toString('hex', 16, 24);
    const before = salts();
    opened.writer.writeBack();
    const after = salts();
    expect(after).not.toBe(before);
    opened.writer.handle([batch(7, [one()])]);
    expect(salts()).toBe(after);
  });

  it('is left alone for a while where writing it back takes long', async () => {
    const clock = new ManualClock();
    const opened = openWriterHere(clock);
    grow(opened, 6);
    const pragma = opened.files.db.pragma.bind(opened.files.db);
    let took_ms = 0;
    const monotonicMs = clock.monotonicMs.bind(clock);
    vi.spyOn(clock, 'monotonicMs').mockImplementation(() => monotonicMs() + took_ms);
    vi.spyOn(opened.files.db, 'pragma').mockImplementation((...asked) => {
      took_ms += 20;
      return pragma(...asked);
    });
    opened.writer.writeBack();
    grow(opened, 6);
    await clock.advance(490);
    expect(opened.writer.is_write_back_due).toBe(false);
    await clock.advance(10);
    expect(opened.writer.is_write_back_due).toBe(true);
  });

  it('is written back in the end whatever waits', () => {
    expect(grow(openWriterHere(), 25)).toBeGreaterThan(3_000_000);
  });

  it('waits for the next commit where it is in doubt', () => {
    const opened = openWriterHere();
    grow(opened, 6);
    const makeRoom = fillDisk(opened.files);
    opened.writer.handle([part(7)]);
    expect(lastDone(opened.replies).trouble).toMatch(/full/);
    makeRoom();
    expect(opened.writer.is_write_back_due).toBe(false);
    opened.writer.handle([batch(8, [one()])]);
    expect(lastDone(opened.replies).trouble).toBeNull();
    expect(opened.writer.is_write_back_due).toBe(true);
  });

  it('is not written back by a loop before all that has arrived is handled, nor after it has stopped', async () => {
    const opened = openWriterHere();
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    const before = database_bytes(opened.files);
    for (let n = 1; n <= 8; n++) opened.writer.handle([part(n)]);
    expect(database_bytes(opened.files)).toBe(before);
    opened.writer.stop();
    await turn();
    expect(database_bytes(opened.files)).toBe(before);
    opened.writer.handle([part(9)]);
    await turn();
    expect(database_bytes(opened.files)).toBeGreaterThan(before + 1_000_000);
  });
});
