/** Metered usage as closed windows. Contract section 7, "Usage". */

/** Every window type, with the unit of its value. */
const WINDOW_UNITS = {
  /** MiB leased × milliseconds. */
  'sandbox.runtime_mib_milliseconds': 'mib_milliseconds',
  /** Thousandths of a core leased × milliseconds. */
  'sandbox.runtime_millicpu_milliseconds': 'millicpu_milliseconds',
  'sandbox.egress_bytes': 'bytes',
  'sandbox.ingress_bytes': 'bytes',
  /** Bytes that the manager carried, both ways together. */
  'sandbox.transfer_bytes': 'bytes',
} as const;

/** What a window measures. */
export type WindowType = keyof typeof WINDOW_UNITS;

/** The unit of a window's value. */
export type WindowUnit = (typeof WINDOW_UNITS)[WindowType];

/** Every window type. */
export const WINDOW_TYPES = Object.keys(WINDOW_UNITS) as WindowType[];

/** The unit of a window type's values. */
export function unitOf(window_type: WindowType): WindowUnit {
  return WINDOW_UNITS[window_type];
}

/** A closed window as `GET /api/v1/usage/windows` shows it. It never changes. Times are RFC 3339 UTC. */
export interface UsageWindow {
  window_id: string;
  region_id: string;
  cluster_id: string;
  window_type: WindowType;
  subject_type: 'sandbox';
  subject_id: string;
  sandbox_id: string;
  window_start: string;
  window_end: string;
  value: number;
  unit: WindowUnit;
  recorded_at: string;
}

/** A page of windows in commit order. */
export interface UsagePage {
  windows: UsageWindow[];
  /** Where the next page begins; never empty, also after the last window. */
  next_cursor: string;
}
