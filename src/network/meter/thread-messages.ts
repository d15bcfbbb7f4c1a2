import type { Reservation } from '../authority.ts';
import type { Direction, PerDirection } from '../directions.ts';
import type { MeteredSandbox } from './meter.ts';
import type { ByteRate } from './token-bucket.ts';
import type { TeamRate } from './token-pool.ts';

/** The settings with which the meter thread is started. */
export interface MeterSettings {
  is_fail_open: boolean;
  /** Increases with each step of the meter, so that a hung thread is detected. */
  heartbeat: SharedArrayBuffer;
}

/** A message to the meter thread. `id` pairs a request with its `done` or `failed`. */
export type ToMeterThread =
  | { kind: 'attach'; id: number; sandbox: MeteredSandbox }
  | { kind: 'detach'; id: number; sandbox_id: string; is_free: boolean }
  | { kind: 'limit'; sandbox_id: string; limits: PerDirection<ByteRate | null> }
  | { kind: 'limit-team'; team_id: string; direction: Direction; rate: TeamRate | null }
  | { kind: 'answer'; team_id: string; direction: Direction; reservation: Reservation }
  | { kind: 'stop' };

/** A message from the meter thread. */
export type FromMeterThread =
  /** The thread runs; writing eight bytes to `wake_fd` wakes it. */
  | { kind: 'started'; wake_fd: number }
  | { kind: 'done'; id: number }
  | { kind: 'failed'; id: number; message: string; code: string | null }
  | { kind: 'reserve'; team_id: string; direction: Direction; bytes: number }
  | { kind: 'give-back'; team_id: string; direction: Direction; bytes: number };
