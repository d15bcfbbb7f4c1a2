import { closeSync, openSync, writeSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { databasePath, openOutboxDatabase } from '../../../../src/outbox/sqlite/files/database-file.ts';
import { scratchFolder } from '../../../support/scratch.ts';

describe('the file of the outbox', () => {
  it('is damage where its free pages are ones in use, though every record can be read', () => {
    const state_dir = scratchFolder();
    const db = openOutboxDatabase(state_dir);
    db.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
      INSERT INTO tree SELECT i, hex(randomblob(100)) FROM n; DELETE FROM tree WHERE id > 1000`);
    db.pragma('wal_checkpoint(TRUNCATE)');
    db.close();
    openOutboxDatabase(state_dir).close();
    // The file's header says where the list of free pages begins: page 2 is none of them.
    const file = openSync(databasePath(state_dir), 'r+');
    writeSync(file, Buffer.from([0, 0, 0, 2]), 0, 4, 32);
    closeSync(file);
    expect(() => openOutboxDatabase(state_dir)).toThrow(expect.objectContaining({ code: 'SQLITE_CORRUPT' }));
  });
});
