import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import type { Log } from '../../base/log.ts';
import { Counter, type Metric } from '../../base/metrics.ts';
import type { Job } from '../../base/schedule.ts';
import { ApiError } from '../../contract/errors.ts';
import { TRANSFER_WAYS, type TransferWay } from '../../contract/transfer.ts';
import type { PerDirection } from '../../network/directions.ts';
import type { Carrier } from '../../runtime/egress/carrier.ts';
import { ConnectError } from '../../webhook/attempt-error.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import { reasonOf } from '../database/database-errors.ts';
import type { OutboxCharge } from '../sandboxes/ports.ts';
import type { UsageMeter } from '../usage/meter.ts';
import { HOUR_MS, startOfHour } from '../usage/spans.ts';
import { type CarriedFor, QUIET_MS, TransferBook, windowTimes } from './transfer-book.ts';
import type { TransferPace } from './transfer-pace.ts';
import type { TransferCountRow, TransferStore } from './transfer-store.ts';

/** How old what is kept of the counts may become: so much is lost at most where a manager is killed. */
const LOOK_MS = 5_000;
const ROWS_AT_ONCE = 100;
/** Teams of sandboxes that are remembered; any can be asked for again. */
const TEAMS_MAX = 10_000;
/** What the manager's own lines of a request's head take at most. */
const OWN_HEAD_BYTES = 1024;
/** Counts of a replica that has kept none for so long are put into windows by any other one. */
const LEFT_MS = 2 * QUIET_MS;
const LEFT_EVERY_MS = 60_000;

/** The dependencies of `Transfers`. */
export interface TransferParts {
  store: TransferStore;
  /** Writes windows; null with `--metering off`. */
  windows: Pick<UsageMeter, 'record'> | null;
  clock: DatabaseClock;
  log: Log;
  /** Null without `--team-transfer-rate`. */
  pace: TransferPace | null;
}

/** A call to a sandbox that is about to be connected. */
export interface OpenedCall {
  sandbox_id: string;
  team_id: string;
  way: TransferWay;
  request: FastifyRequest;
}

/** A connection that carries a sandbox's bytes, and how many of them are counted. */
interface Carried {
  connection: Socket;
  way: TransferWay;
  sandbox: CarriedFor;
  read: number;
  written: number;
}

/**
 * Counts the bytes of sandboxes that pass through this manager, by the counters that connections have, and puts all of them
 * into windows. Source: contract section 7, "Transfer".
 */
export class Transfers implements Carrier, OutboxCharge {
  readonly #parts: TransferParts;
  readonly #book = new TransferBook();
  readonly #live = new Set<Carried>();
  readonly #bytes = new Counter('transfer_bytes_total', 'Bytes of sandboxes that the manager carried.', [
    'way',
    'direction',
  ]);
  readonly #teams = new Map<string, string>();
  #looked_ms: number;
  #left_ms = 0;
  #is_stopped = false;

  constructor(parts: TransferParts) {
    this.#parts = parts;
    this.#looked_ms = parts.clock.wallMs();
    for (const way of TRANSFER_WAYS) this.#tell(way, { egress: 0, ingress: 0 });
  }

  /**
   * A connection that `connect` makes to a sandbox, whose bytes are counted from now on, and paced where the team has a rate:
   * then it is made once the request's head, and a body that was read, may pass. Rejects as `connect` does.
   */
  async open({ way, request, ...sandbox }: OpenedCall, connect: () => Promise<Socket>): Promise<Duplex> {
    const { pace } = this.#parts;
    const { team_id } = sandbox;
    const first_bytes = pace === null ? 0 : firstBytes(request);
    if (pace !== null && !(await pace.first(team_id, first_bytes, request.raw.socket))) throw gone();
    const connection = await connect();
    this.#count(way, sandbox, connection);
    return pace === null ? connection : pace.over(connection, team_id, first_bytes);
  }

  /** See `Carrier`. */
  async carry(sandbox_id: string, connection: Socket): Promise<Duplex> {
    // What is carried after the last look would be in no window.
    if (this.#is_stopped) throw new ConnectError('connect', 'the manager is stopping');
    const { pace } = this.#parts;
    const team_id = pace === null ? null : await this.#teamOf(sandbox_id);
    this.#count('webhooks', { sandbox_id, team_id }, connection);
    return pace === null || team_id === null ? connection : pace.overWebhooks(connection, team_id);
  }

  async #teamOf(sandbox_id: string): Promise<string | null> {
    const known = this.#teams.get(sandbox_id);
    if (known !== undefined) return known;
    const team_id = (await this.#parts.store.teams([sandbox_id])).get(sandbox_id) ?? null;
    if (this.#teams.size >= TEAMS_MAX) this.#teams.clear();
    if (team_id !== null) this.#teams.set(sandbox_id, team_id);
    return team_id;
  }

  /** Counts bytes of a sandbox's webhooks that were sent from the manager's outbox. */
  sent(sandbox: CarriedFor, bytes: number): void {
    const { pace } = this.#parts;
    if (pace && sandbox.team_id !== null) pace.owe(sandbox.team_id, bytes);
    this.#note('webhooks', sandbox, { egress: bytes, ingress: 0 }, this.#parts.clock.wallMs());
  }

  /** See `OutboxCharge`. */
  get has_rate(): boolean {
    return this.#parts.pace !== null;
  }

  /** See `OutboxCharge`. */
  held(): string[] {
    return this.#parts.pace?.owing() ?? [];
  }

  /** See `OutboxCharge`. */
  onFree(call: () => void): void {
    this.#parts.pace?.onPaid(call);
  }

  /** The counters, for the registry. */
  metrics(): Metric[] {
    const { name, type, help } = this.#bytes;
    const samples = () => {
      this.#look();
      return this.#bytes.samples();
    };
    return [{ name, type, help, samples }];
  }

  /** The job that keeps the counts, and closes windows. */
  job(): Job {
    return {
      name: 'transfer',
      run: async () => {
        const now_ms = this.#look();
        if (!this.#parts.windows) return LOOK_MS;
        await this.#keep();
        await this.#close(this.#book.close(now_ms));
        if (now_ms - this.#left_ms >= LEFT_EVERY_MS) await this.#closeLeft(now_ms);
        return Math.min(LOOK_MS, startOfHour(now_ms) + HOUR_MS - now_ms);
      },
    };
  }

  /** Ends what is still carried, and puts what is counted into windows. Never rejects. */
  async stop(): Promise<void> {
    this.#is_stopped = true;
    try {
      const now_ms = this.#look();
      for (const { connection } of this.#live) connection.destroy();
      this.#live.clear();
      await this.#keep();
      await this.#close(this.#book.close(now_ms, true));
    } catch (error) {
      this.#parts.log.warn({ reason: reasonOf(error) }, 'the last bytes that were carried are not counted');
    }
  }

  #count(way: TransferWay, sandbox: CarriedFor, connection: Socket): void {
    const { bytesRead: read, bytesWritten: written } = connection;
    const carried = { connection, way, sandbox, read, written };
    this.#live.add(carried);
    const onClose = () => {
      if (this.#live.delete(carried)) this.#add(carried, this.#parts.clock.wallMs());
    };
    if (connection.destroyed) onClose();
    else connection.once('close', onClose);
  }

  /** Counts what has passed since the last look; returns the time. */
  #look(): number {
    const now_ms = this.#parts.clock.wallMs();
    for (const carried of this.#live) this.#add(carried, now_ms);
    this.#looked_ms = now_ms;
    return now_ms;
  }

  #add(carried: Carried, now_ms: number): void {
    const { connection, way, sandbox } = carried;
    // What waits to be written counts, and goes where the connection breaks: no count goes back.
    const read = Math.max(0, connection.bytesRead - carried.read);
    const written = Math.max(0, connection.bytesWritten - carried.written);
    if (read + written === 0) return;
    carried.read += read;
    carried.written += written;
    const [egress, ingress] = way === 'webhooks' ? [written, read] : [read, written];
    this.#note(way, sandbox, { egress, ingress }, now_ms);
  }

  #note(way: TransferWay, sandbox: CarriedFor, bytes: PerDirection<number>, now_ms: number): void {
    this.#tell(way, bytes);
    if (this.#parts.windows) this.#book.add(sandbox, bytes.egress + bytes.ingress, this.#looked_ms, now_ms);
  }

  #tell(way: TransferWay, { egress, ingress }: PerDirection<number>): void {
    this.#bytes.add([way, 'egress'], egress);
    this.#bytes.add([way, 'ingress'], ingress);
  }

  async #keep(): Promise<void> {
    const { store } = this.#parts;
    const unknown = this.#book.unknown();
    for (let i = 0; i < unknown.length; i += ROWS_AT_ONCE) {
      const some = unknown.slice(i, i + ROWS_AT_ONCE);
      this.#book.identify(some, await store.teams(some));
    }
    // A second time for what belongs to a new window, because another replica has closed its own.
    await this.#keepRows(this.#book.unkept());
    await this.#keepRows(this.#book.unkept());
  }

  async #keepRows(unkept: TransferCountRow[]): Promise<void> {
    const { store } = this.#parts;
    for (let i = 0; i < unkept.length; i += ROWS_AT_ONCE) {
      const rows = unkept.slice(i, i + ROWS_AT_ONCE);
      this.#book.noteKept(rows, await store.write((tx) => store.keep(tx, rows)));
    }
  }

  /** Puts counts that are kept into windows, each once: whoever takes its row writes its window. */
  async #close(window_ids: readonly string[]): Promise<void> {
    const { store, windows } = this.#parts;
    if (!windows) return;
    for (let i = 0; i < window_ids.length; i += ROWS_AT_ONCE) {
      const some = window_ids.slice(i, i + ROWS_AT_ONCE);
      await store.write(async (tx) => {
        const rows = await store.take(tx, some);
        const spans = rows.map((row) => {
          const { window_id, sandbox_id, team_id, bytes: value } = row;
          const window_type = 'sandbox.transfer_bytes' as const;
          return { ...windowTimes(row), window_id, sandbox_id, team_id, window_type, value };
        });
        if (spans.length > 0) await windows.record(tx, spans);
      });
      this.#book.forget(some);
    }
  }

  /** Closes what replicas have left that have ended. */
  async #closeLeft(now_ms: number): Promise<void> {
    const left = await this.#parts.store.unseenSince(now_ms - LEFT_MS, ROWS_AT_ONCE);
    await this.#close(left.filter((id) => !this.#book.has(id)));
    // More than one page is taken up at the next look.
    if (left.length < ROWS_AT_ONCE) this.#left_ms = now_ms;
  }
}

/** At least as many bytes as a sandbox gets at once with a request: its head, and a body that was read. */
function firstBytes({ body, raw }: FastifyRequest): number {
  const head = raw.rawHeaders.reduce((sum, text) => sum + text.length, raw.url?.length ?? 0);
  return OWN_HEAD_BYTES + 2 * head + (Buffer.isBuffer(body) ? body.length : 0);
}

/** Nobody reads it. */
function gone(): ApiError {
  return new ApiError('unavailable', 'The caller has gone.');
}
