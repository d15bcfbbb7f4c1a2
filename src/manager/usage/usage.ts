import { timestamp } from '../../base/clock.ts';
import { kernelRandom } from '../../base/entropy.ts';
import type { Metric } from '../../base/metrics.ts';
import type { Job } from '../../base/schedule.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import type { UsagePage, UsageWindow } from '../../contract/usage.ts';
import type { WindowType, WindowUnit } from '../../contract/words.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { decodeCursor, encodeCursor, START } from '../database/cursor.ts';
import type { Database } from '../database/database.ts';
import { PositionStore } from '../database/position-store.ts';
import { SettingStore } from '../database/setting-store.ts';
import type { LeaseMetering } from '../sandboxes/ports.ts';
import { UsageMeter, type UsageMeterParts } from './meter.ts';
import { NetworkMeter } from './network-meter.ts';
import { NetworkPositionStore } from './network-position-store.ts';
import { UsageStore, type WindowRow } from './usage-store.ts';

/** An operator has to turn metering on. */
const OFF_RETRY_S = 60;

/** Metering with `--metering off`: records nothing. */
export const NO_METERING: LeaseMetering = {
  async began() {},
  async changed() {},
  async ended() {},
  async watched() {},
};

/** A request for a page of windows. */
interface WindowsRequest {
  /** The cursor of the previous page; undefined for the first one. */
  cursor?: string | undefined;
  limit: number;
  window_type?: WindowType | undefined;
}

/** The usage of a manager: metering, and reading the closed windows. Source: contract section 7, "Usage". */
export class Usage {
  readonly metering: LeaseMetering;
  readonly traffic: NetworkMeter;
  readonly #store: UsageStore;
  readonly #positions: PositionStore;
  readonly #database_id: string;
  /** Null with `--metering off`. */
  readonly #meter: UsageMeter | null;

  /** Prepares positions and leases. Without metering, open leases are dropped. Errors: `unavailable`. */
  static async open(
    database: Database,
    parts: Omit<UsageMeterParts, 'store'> & { runtime: Pick<Runtime, 'networks'> },
    is_metering: boolean,
  ): Promise<Usage> {
    const store = new UsageStore(database);
    const positions = new PositionStore(database);
    await positions.advance();
    const made = kernelRandom(16).toString('hex');
    const database_id = await new SettingStore(database.db).keep('database_id', made);
    const meter = is_metering ? new UsageMeter({ ...parts, store }) : null;
    // Time that runs unmetered must not be counted when metering is turned on again.
    await (meter ? meter.begin() : store.dropLeases());
    const network_positions = new NetworkPositionStore(database);
    if (!meter) await network_positions.stopCounting();
    const { clock, runtime } = parts;
    const { networks } = runtime;
    const traffic = new NetworkMeter({ store: network_positions, networks, clock, meter });
    return new Usage(store, positions, database_id, meter, traffic);
  }

  private constructor(
    store: UsageStore,
    positions: PositionStore,
    database_id: string,
    meter: UsageMeter | null,
    traffic: NetworkMeter,
  ) {
    this.traffic = traffic;
    this.metering = meter ?? NO_METERING;
    this.#store = store;
    this.#positions = positions;
    this.#database_id = database_id;
    this.#meter = meter;
  }

  /** What closes windows of what is counted elsewhere; null with `--metering off`. */
  get windows(): Pick<UsageMeter, 'record'> | null {
    return this.#meter;
  }

  /** The jobs of metering; only that of traffic, which records show, if it is off. */
  jobs(): Job[] {
    return [...(this.#meter ? [this.#meter.job()] : []), this.traffic.job()];
  }

  /** The metrics of usage, for the registry. */
  metrics(): Metric[] {
    return [...(this.#meter ? [this.#meter.windows] : []), ...this.traffic.metrics()];
  }

  /** A page of a team's closed windows after a cursor. Errors: `invalid_request` (`cursor`), `unavailable`. */
  async page(team_id: string, { cursor, limit, window_type }: WindowsRequest): Promise<UsagePage> {
    if (!this.#meter) {
      throw new ApiError('unavailable', 'Metering is turned off.', { retry_after_s: OFF_RETRY_S });
    }
    const reader = { team_id, database_id: this.#database_id };
    const after = cursor === undefined ? START : decodeCursor(reader, cursor);
    if (!after) throw invalidField('cursor', 'is damaged, or belongs to another team or service');
    const rows = await this.#store.page(team_id, after, { limit, window_type });
    if (rows.length === 0 && (await this.#positions.isAhead('usage_windows', after))) {
      throw invalidField(
        'cursor',
        'is ahead of this database, which was restored from a backup: start without a cursor',
      );
    }
    return { windows: rows.map(windowOf), next_cursor: encodeCursor(reader, rows.at(-1) ?? after) };
  }
}

function windowOf(row: WindowRow): UsageWindow {
  return {
    window_id: row.window_id,
    region_id: row.region_id,
    cluster_id: row.cluster_id,
    window_type: row.window_type as WindowType,
    subject_type: 'sandbox',
    subject_id: row.subject_id,
    sandbox_id: row.sandbox_id,
    window_start: timestamp(row.window_start_ms),
    window_end: timestamp(row.window_end_ms),
    value: row.value,
    unit: row.unit as WindowUnit,
    recorded_at: timestamp(row.recorded_at_ms),
  };
}
