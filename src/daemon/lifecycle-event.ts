import { type Clock, sleep } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import type { SandboxEvent } from '../contract/events.ts';
import type { Publisher } from './publisher.ts';

/** The delay before an event that the outbox refused is retried. */
const EMIT_RETRY_MS = 1_000;

/** What `emitUntilStored` works with. */
export interface EmitParts {
  publisher: Pick<Publisher, 'emit'>;
  clock: Clock;
  log: Log;
}

/**
 * Emits an event of the sandbox's own life, and retries while the outbox refuses it. After a failure `givesUp` is
 * asked, with the monotonic time of the next attempt in ms, whether to stop; then the event is lost.
 */
export async function emitUntilStored(
  { publisher, clock, log }: EmitParts,
  event: SandboxEvent,
  givesUp: (retry_at_ms: number) => boolean,
): Promise<void> {
  const { event_type, happened_at_ms } = event;
  const key = newId(`${event_type} `, happened_at_ms);
  for (;;) {
    try {
      await publisher.emit(event, key);
      return;
    } catch (error) {
      log.warn(
        { event_type, reason: (error as Error).message },
        'the outbox refused an event: it will be retried',
      );
      if (givesUp(clock.monotonicMs() + EMIT_RETRY_MS)) return;
      await sleep(clock, EMIT_RETRY_MS);
    }
  }
}
