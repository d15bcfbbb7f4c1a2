import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';

/** Of which database a hold is taken, and how. */
export interface HoldParts {
  /** The URL of `--database`. */
  url: string;
  /** `--replicas 1`: nobody else holds it; otherwise nobody who is alone. */
  is_alone: boolean;
  clock: Clock;
  log: Log;
}

/** A database that this manager holds for as long as it lives, so that no other takes it for its own. */
export interface DatabaseHold {
  /** Resolves with a reason once another manager holds the database instead; otherwise never. */
  readonly displaced: Promise<string>;
  /** Lets others hold it. Idempotent. */
  release(): Promise<void>;
}
