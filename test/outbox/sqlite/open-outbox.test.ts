import { chmodSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { openWriterHere } from '../../support/outbox/writer.ts';
import { scratchFolder } from '../../support/scratch.ts';

describe('the files', () => {
  it('are for their owner alone, whatever the umask', () => {
    const umask = process.umask(0);
    try {
      const { state_dir } = openWriterHere();
      expect(statSync(state_dir).mode & 0o777).toBe(0o700);
      for (const name of ['outbox.db', 'outbox.db-wal', 'lock', 'high-water']) {
        expect(statSync(join(state_dir, name)).mode & 0o777, name).toBe(0o600);
      }
    } finally {
      process.umask(umask);
    }
  });

  it('are refused where others can write their folder', () => {
    const state_dir = scratchFolder();
    chmodSync(state_dir, 0o777);
    expect(() => openWriterHere(new ManualClock(), state_dir)).toThrow(/is writable by other users/);
  });
});
