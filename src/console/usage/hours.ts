import type { UsageWindow } from '../../contract/usage.ts';
import type { WindowType } from '../../contract/words.ts';
import { bytes, decimal } from '../base/format.ts';

/** What a window type measures, for people. */
export const TITLES: Record<WindowType, string> = {
  'sandbox.runtime_mib_milliseconds': 'Memory leased',
  'sandbox.runtime_millicpu_milliseconds': 'CPU leased',
  'sandbox.egress_bytes': 'Egress',
  'sandbox.ingress_bytes': 'Ingress',
  'sandbox.transfer_bytes': 'Transfer',
};

const HOUR_S = 3_600;
const MIB_MS_PER_MIB_HOUR = HOUR_S * 1_000;
const MILLICPU_MS_PER_CORE_HOUR = HOUR_S * 1_000 * 1_000;
const MIB_PER_GIB = 1024;

/** A value of a window type in a unit for people. */
export function amount(type: WindowType, value: number): string {
  if (type === 'sandbox.runtime_millicpu_milliseconds') return coreHours(value / MILLICPU_MS_PER_CORE_HOUR);
  if (type !== 'sandbox.runtime_mib_milliseconds') return bytes(value);
  const mib_hours = value / MIB_MS_PER_MIB_HOUR;
  if (mib_hours > 0 && mib_hours < 1) return `${mib_hours.toPrecision(2)} MiB·h`;
  return mib_hours < MIB_PER_GIB
    ? `${decimal(mib_hours)} MiB·h`
    : `${decimal(mib_hours / MIB_PER_GIB)} GiB·h`;
}

function coreHours(hours: number): string {
  return `${hours > 0 && hours < 1 ? hours.toPrecision(2) : decimal(hours)} core·h`;
}

/** The values by the hour in which they end: times in seconds, and sums; hours without windows are 0. */
export function hourly(windows: readonly UsageWindow[]): [number[], number[]] {
  const sums = new Map<number, number>();
  for (const { window_end, value } of windows) {
    // What ends at the full hour belongs to the hour before.
    const hour = Math.ceil(new Date(window_end).getTime() / 1_000 / HOUR_S) * HOUR_S - HOUR_S;
    if (Number.isFinite(hour)) sums.set(hour, (sums.get(hour) ?? 0) + value);
  }
  const hours = [...sums.keys()];
  const times: number[] = [];
  // One hour alone would have no width.
  const first = Math.min(...hours) - HOUR_S;
  const last = Math.max(...hours) + HOUR_S;
  for (let hour = first; hour <= last; hour += HOUR_S) times.push(hour);
  return [times, times.map((hour) => sums.get(hour) ?? 0)];
}
