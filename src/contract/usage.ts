/** Metered usage as closed windows. Source: contract section 7, "Usage". */

/** Every type of window, with the unit of its value. */
const WINDOW_UNITS = {
  /** MiB leased × milliseconds. */
  'sandbox.runtime_mib_milliseconds': 'mib_milliseconds',
  'sandbox.egress_bytes': 'bytes',
  'sandbox.ingress_bytes': 'bytes',
} as const;

export type WindowType = keyof typeof WINDOW_UNITS;

export type WindowUnit = (typeof WINDOW_UNITS)[WindowType];

export const WINDOW_TYPES = Object.keys(WINDOW_UNITS) as WindowType[];

export function unitOf(window_type: WindowType): WindowUnit {
  return WINDOW_UNITS[window_type];
}

/** A closed window, as `GET /api/v1/usage/windows` answers it. It never changes. */
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

export interface UsagePage {
  windows: UsageWindow[];
  /** Never empty. */
  next_cursor: string;
}
