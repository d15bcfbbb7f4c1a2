import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { OutboxClient } from '../../outbox/sqlite/client.ts';

/** The copy's name in the state directory. */
const OUTBOX_COPY = 'outbox-copy.db';

/** Runs `work` while a consistent copy of the outbox is in the state directory, for a fork to take. */
export async function withOutboxCopy(
  store: Pick<OutboxClient, 'copyTo'>,
  state_dir: string,
  work: () => Promise<void>,
): Promise<void> {
  const copy = join(state_dir, OUTBOX_COPY);
  try {
    await store.copyTo(copy);
    await work();
  } finally {
    rmSync(copy, { force: true });
  }
}
