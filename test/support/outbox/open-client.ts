import { onTestFinished } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import { OutboxClient } from '../../../src/outbox/sqlite/client.ts';
import { scratchFolder } from '../scratch.ts';

const LIMITS = { max_bytes: 2 ** 30, max_records: 1_000_000, window_ms: 86_400_000 };

/** The sandbox's outbox on a real disk, as the daemon uses it; it closes when the test ends. */
export async function openClient(
  clock: Clock,
  limits: Partial<typeof LIMITS> = {},
): Promise<{ store: OutboxClient; state_dir: string }> {
  const state_dir = scratchFolder();
  const given = { state_dir, limits: { ...LIMITS, ...limits } };
  const onFault = (error: Error) => {
    throw error;
  };
  const store = await OutboxClient.open(given, clock, onFault, true);
  onTestFinished(() => store.close());
  await store.adopt({ sandbox_id: 'sb-1', team_id: 'team-1', secret: '', record_key: null });
  return { store, state_dir };
}
