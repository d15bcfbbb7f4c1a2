import type { AttemptReport } from '../outbox/dispatcher.ts';
import type { CommitReport } from '../outbox/remote-store.ts';

/** Figures for `/metrics`, kept as things happen and never found by scanning. */
export class Metrics {
  #lost = 0;
  lost(records: number): void {
    this.#lost += records;
  }
  committed(_report: CommitReport): void {}
  attempted(_report: AttemptReport, _wall_ms: number): void {}
  text(): string {
    return `webhook_records_lost_total ${this.#lost}\n`;
  }
}
