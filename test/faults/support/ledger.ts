import type { Answer } from './ask.ts';
import type { Daemon } from './daemon.ts';

/** What publishers were told: which events were acknowledged, and which payloads were refused. */
export class Ledger {
  /** The marker of each acknowledged event, by its id. */
  readonly acknowledged = new Map<string, string>();
  /** Markers whose publish was answered with 5xx, or not at all. */
  readonly refused = new Set<string>();
  #next = 0;

  /** Publishes one event with a marker of its own; null where no answer came. */
  async publish(
    daemon: Daemon,
    more: Record<string, unknown> = {},
    within_ms?: number,
  ): Promise<Answer | null> {
    const marker = `m${++this.#next}`;
    const question = within_ms === undefined ? {} : { within_ms };
    const answer = await daemon.publish({ n: marker, ...more }, question).catch(() => null);
    if (answer?.status === 202) {
      const receipt = answer.json?.data as { event_id: string } | undefined;
      this.acknowledged.set(receipt?.event_id ?? '', marker);
    } else {
      this.refused.add(marker);
    }
    return answer;
  }

  /** Leaves out of judgement what was acknowledged after the first `count`. */
  keepFirst(count: number): void {
    for (const event_id of [...this.acknowledged.keys()].slice(count)) this.acknowledged.delete(event_id);
  }

  /** Publishes `count` events, `beside` of them at a time; returns the statuses, 0 for no answer. */
  async publishMany(daemon: Daemon, count: number, beside = 1): Promise<number[]> {
    const statuses: number[] = [];
    let started = 0;
    const publisher = async () => {
      while (started < count) {
        started += 1;
        statuses.push((await this.publish(daemon))?.status ?? 0);
      }
    };
    await Promise.all(Array.from({ length: beside }, publisher));
    return statuses;
  }
}
