import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { OutboxClient } from '../../outbox/sqlite/client.ts';
import type { DaemonConfig } from '../config.ts';
import type { ControlToken } from '../control-token.ts';
import type { Metrics } from '../metrics.ts';
import type { OutboxHealth } from '../outbox-health.ts';
import { tightenHeap } from './heap.ts';

/** What an outbox is opened with, and who learns of its commits and repairs. */
export interface OutboxParts {
  config: DaemonConfig;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  health: OutboxHealth;
  token: ControlToken;
  /** Called when the outbox can no longer be written and the daemon must end. */
  onFault: () => void;
}

/**
 * Opens the outbox in the state directory. `begins_here`: in this thread, until it requires a thread of its own. Throws
 * `outbox_unavailable` if the disk refuses, and StartError if the outbox cannot be used.
 */
export async function openOutbox(parts: OutboxParts, begins_here: boolean): Promise<OutboxClient> {
  const { config, clock, log, metrics, health, token } = parts;
  const limits = {
    max_bytes: config.outbox_max_bytes,
    max_records: config.outbox_max_records,
    window_ms: config.delivery_window_ms,
  };
  const onFault = (error: Error) => {
    log.fatal({ reason: error.message }, 'the outbox writer failed');
    parts.onFault();
  };
  const store = await OutboxClient.open({ state_dir: config.state_dir, limits }, clock, onFault, begins_here);
  store.onCommitMeasured((report) => {
    metrics.observeCommit(report);
    if (store.is_in_thread) tightenHeap();
    health.observe(report.trouble);
    token.checkFile();
  });
  store.onMended((mended) => {
    health.reportRepair(mended);
    if (mended.how === 'restored') token.restore();
  });
  return store;
}
