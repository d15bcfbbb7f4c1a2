import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { withOutboxCopy } from '../../../src/daemon/pause/outbox-copy.ts';
import { draft } from '../../support/in-process-store.ts';
import { openClient } from '../../support/outbox/open-client.ts';
import { scratchFolder } from '../../support/scratch.ts';

async function outbox() {
  const opened = await openClient(systemClock);
  return { ...opened, copy: join(opened.state_dir, 'outbox-copy.db') };
}

function recordsIn(path: string): unknown {
  const db = new Database(path, { readonly: true });
  try {
    return db.prepare('SELECT count(*) FROM records').pluck().get();
  } finally {
    db.close();
  }
}

describe('a copy of the outbox', () => {
  it('holds every committed record while the work runs, and is removed after it', async () => {
    const { store, state_dir, copy } = await outbox();
    await store.append({ drafts: [draft('{"a":1}'), draft('{"a":2}')] });
    let records: unknown;
    await withOutboxCopy(store, state_dir, async () => {
      records = recordsIn(copy);
    });
    expect(records).toBe(2);
    expect(existsSync(copy)).toBe(false);
  });

  it('is removed when the work fails', async () => {
    const { store, state_dir, copy } = await outbox();
    const work = async () => {
      throw new Error('the fork was refused');
    };
    await expect(withOutboxCopy(store, state_dir, work)).rejects.toThrow('the fork was refused');
    expect(existsSync(copy)).toBe(false);
  });

  it('that cannot be made leaves the work undone', async () => {
    let has_worked = false;
    const store = { copyTo: () => Promise.reject(new Error('no space left')) };
    const made = withOutboxCopy(store, scratchFolder(), async () => {
      has_worked = true;
    });
    await expect(made).rejects.toThrow('no space left');
    expect(has_worked).toBe(false);
  });
});
