import { expect } from 'vitest';
import type { HostileReceiver, Received } from './hostile-receiver.ts';
import type { Ledger } from './ledger.ts';
import { until } from './until.ts';

interface Verdict {
  receiver: HostileReceiver;
  ledger: Ledger;
  /** Attempts that were in flight when the daemon died may be repeated. */
  may_repeat?: boolean;
  within_ms?: number;
}

/**
 * Waits until everything that was acknowledged is delivered, and judges what the receiver got: signatures over the raw
 * bytes, one body for one id, no attempt after a recorded 2xx, at most one event of a refused publish.
 */
export async function expectKept({
  receiver,
  ledger,
  may_repeat = false,
  within_ms = 40_000,
}: Verdict): Promise<void> {
  const lost = () => {
    const delivered = receiver.delivered();
    return [...ledger.acknowledged.keys()].filter((event_id) => !delivered.has(event_id));
  };
  await until('every acknowledged event is delivered', () => lost().length === 0, within_ms);
  const by_event = Map.groupBy(receiver.requests, ({ event_id }) => event_id);
  for (const [event_id, requests] of by_event) {
    const bodies = new Set(requests.map(({ body }) => body.toString('latin1')));
    expect(bodies.size, `bodies of ${event_id}`).toBe(1);
    expect(
      requests.every(({ is_signed }) => is_signed),
      `signatures of ${event_id}`,
    ).toBe(true);
    if (!may_repeat) expect(attemptsAfterSuccess(requests), `attempts at ${event_id} after its 2xx`).toBe(0);
  }
  for (const [event_id, marker] of ledger.acknowledged) {
    expect(markerOf(by_event.get(event_id)?.[0])).toBe(marker);
  }
  expectRefusedAtMostOnce(receiver, ledger);
}

function expectRefusedAtMostOnce(receiver: HostileReceiver, ledger: Ledger): void {
  const events = new Map<string, Set<string>>();
  for (const request of receiver.requests) {
    const marker = markerOf(request);
    if (marker === null || !ledger.refused.has(marker)) continue;
    events.set(marker, (events.get(marker) ?? new Set()).add(request.event_id));
  }
  for (const [marker, event_ids] of events) expect(event_ids.size, `events of the refused ${marker}`).toBe(1);
}

function attemptsAfterSuccess(requests: Received[]): number {
  const first = requests.findIndex(({ answered }) => answered !== null && answered >= 200 && answered < 300);
  return first < 0 ? 0 : requests.length - 1 - first;
}

/** The marker in an event's payload; null where there is none. */
export function markerOf(request: Received | undefined): string | null {
  if (!request) return null;
  const { payload } = JSON.parse(request.body.toString('utf8')) as { payload: { n?: string } };
  return payload.n ?? null;
}
