import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import type { Reservation } from '../../network/authority.ts';
import type { RateAuthority } from '../quotas/rate-authority.ts';
import { PacedStream } from './paced-stream.ts';
import { TeamLane, type TokenWait, type WaitingBytes } from './team-lane.ts';

const SECOND_MS = 1_000;
/** A piece is what is read at once, or less under a slow rate, where each of many connections is to get its turn soon. */
const PIECE_MAX_BYTES = 64 * 1024;
const PIECE_MIN_BYTES = 16 * 1024;
const PIECES_PER_SECOND = 64;
/** The wait before an authority that cannot be reached is asked again for what was sent already. */
const RETRY_MS = 1_000;

/** What a `TransferPace` works with. */
export interface TransferPaceParts {
  /** Of each team, both directions together. */
  bytes_per_second: number;
  authority: RateAuthority;
  /** `--quota-fail-open`: everything passes while the authority cannot be reached. */
  is_fail_open: boolean;
  clock: Clock;
}

/** Bytes of a team that were sent without waiting and are paid later. */
interface Debt {
  bytes: number;
  /** When it is paid, in ms of the monotonic clock; infinite while that is not known. */
  until_ms: number;
}

/**
 * Holds the bytes that managers carry to a rate of each team, by one bucket for all replicas. Bytes wait and are never
 * refused, and no team waits for another. Source: contract section 7, "Transfer".
 */
export class TransferPace {
  readonly #parts: TransferPaceParts;
  readonly #lanes = new Map<string, TeamLane>();
  readonly #debts = new Map<string, Debt>();
  readonly #piece_bytes: number;
  readonly #onPaid: (() => void)[] = [];

  constructor(parts: TransferPaceParts) {
    this.#parts = parts;
    const share = Math.floor(parts.bytes_per_second / PIECES_PER_SECOND);
    this.#piece_bytes = Math.max(PIECE_MIN_BYTES, Math.min(PIECE_MAX_BYTES, share));
  }

  /** Waits for a request's first bytes, before there is a connection whose other side would wait; false if `caller` closes first. */
  async first(team_id: string, bytes: number, caller: Socket): Promise<boolean> {
    if (caller.destroyed) return false;
    const wait = this.#wait(team_id, { bytes, webhook_since_ms: null });
    caller.once('close', wait.cancel);
    const is_granted = await wait.granted;
    caller.off('close', wait.cancel);
    return is_granted;
  }

  /** A connection to a sandbox, paced; `prepaid_bytes` were waited for. */
  over(connection: Socket, team_id: string, prepaid_bytes: number): Duplex {
    const wait = (bytes: number) => this.#wait(team_id, { bytes, webhook_since_ms: null });
    return new PacedStream(connection, { wait, prepaid_bytes, piece_bytes: this.#piece_bytes });
  }

  /** A connection to the receiver of webhooks, paced: a request begins with the first byte after an answer. */
  overWebhooks(connection: Socket, team_id: string): Duplex {
    const { clock } = this.#parts;
    let since_ms = clock.monotonicMs();
    let is_answering = false;
    const wait = (bytes: number, direction: 'in' | 'out') => {
      if (direction === 'in' && is_answering) since_ms = clock.monotonicMs();
      is_answering = direction === 'out';
      return this.#wait(team_id, { bytes, webhook_since_ms: since_ms });
    };
    return new PacedStream(connection, { wait, prepaid_bytes: 0, piece_bytes: this.#piece_bytes });
  }

  /** Charges bytes that were sent already: the team is in debt until its rate has gained them. */
  owe(team_id: string, bytes: number): void {
    const debt = this.#debts.get(team_id);
    if (debt) debt.bytes += bytes;
    else this.#debts.set(team_id, { bytes, until_ms: 0 });
    if (debt === undefined || debt.until_ms !== Number.POSITIVE_INFINITY) void this.#pay(team_id);
  }

  /** The teams that are in debt. */
  owing(): string[] {
    return [...this.#debts.keys()];
  }

  /** Calls back whenever a team is in debt no more. */
  onPaid(call: () => void): void {
    this.#onPaid.push(call);
  }

  #wait(team_id: string, waiting: WaitingBytes): TokenWait {
    return this.#laneOf(team_id).wait(waiting);
  }

  #laneOf(team_id: string): TeamLane {
    const known = this.#lanes.get(team_id);
    if (known) return known;
    const lane: TeamLane = new TeamLane({
      ...this.#parts,
      reserve: (bytes) => this.#reserve(team_id, bytes),
      onRest: () => {
        if (this.#lanes.get(team_id) === lane) this.#lanes.delete(team_id);
      },
    });
    this.#lanes.set(team_id, lane);
    return lane;
  }

  async #reserve(team_id: string, bytes: number): Promise<Reservation> {
    const { authority, bytes_per_second } = this.#parts;
    const policy = {
      limit_value: bytes_per_second,
      interval_ms: SECOND_MS,
      burst_value: bytes_per_second,
    };
    const answer = await authority.reserve({ team_id, dimension: 'transfer_bytes' }, policy, bytes);
    return answer.outcome === 'reserved' ? answer : { outcome: answer.outcome };
  }

  async #pay(team_id: string): Promise<void> {
    const debt = this.#debts.get(team_id);
    if (!debt) return;
    const { clock, is_fail_open } = this.#parts;
    while (debt.bytes > 0) {
      const { bytes } = debt;
      debt.until_ms = Number.POSITIVE_INFINITY;
      const answer = await this.#reserve(team_id, bytes);
      if (answer.outcome === 'reserved') debt.until_ms = clock.monotonicMs() + answer.delay_ms;
      else if (is_fail_open) debt.until_ms = clock.monotonicMs();
      else {
        clock.after(RETRY_MS, () => void this.#pay(team_id));
        return;
      }
      debt.bytes -= bytes;
    }
    const left_ms = debt.until_ms - clock.monotonicMs();
    if (left_ms > 0) clock.after(Math.ceil(left_ms), () => this.#settle(team_id, debt));
    else this.#settle(team_id, debt);
  }

  #settle(team_id: string, debt: Debt): void {
    if (debt.bytes > 0 || debt.until_ms > this.#parts.clock.monotonicMs()) return;
    if (this.#debts.get(team_id) !== debt) return;
    this.#debts.delete(team_id);
    for (const call of this.#onPaid) call();
  }
}
