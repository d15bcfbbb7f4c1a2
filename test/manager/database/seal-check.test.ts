import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

describe('a key file', () => {
  it('is refused at a start if it is not the one of the database', async () => {
    const folder = scratchFolder();
    const database = `sqlite:${join(folder, 'manager.db')}`;
    const { stop } = await startManager(database, { folder });
    await stop();
    await expect(startManager(database, { folder: scratchFolder() })).rejects.toThrow(
      /--secret-key-file holds a different key/,
    );
  });
});
