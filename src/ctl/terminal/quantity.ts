/** A duration in ms for display: `12 ms`, `1.2 s`, `3 min 4 s`, `2 h 5 min`, `3 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const [seconds, minutes, hours] = [ms / 1_000, ms / 60_000, ms / 3_600_000].map(Math.floor) as [
    number,
    number,
    number,
  ];
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A duration in ms at a glance, for a column: `12 s`, `3 min`, `2 h`, `4 d`; a negative one counts as 0, and none is `-`. */
export function glance(ms: number): string {
  if (Number.isNaN(ms)) return '-';
  const [seconds, minutes, hours, days] = [1_000, 60_000, 3_600_000, 86_400_000].map((unit) =>
    Math.max(0, Math.floor(ms / unit)),
  ) as [number, number, number, number];
  if (minutes < 1) return `${seconds} s`;
  if (hours < 1) return `${minutes} min`;
  return days < 1 ? `${hours} h` : `${days} d`;
}

/** A number of bytes for display: `512 B`, `1.2 MiB`. */
export function size(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** An RFC 3339 time for display, to the second: `2026-01-01 00:00:00Z`; `-` for null. */
export function moment(time: string | null): string {
  return time === null ? '-' : `${time.slice(0, 10)} ${time.slice(11, 19)}Z`;
}

const UNITS_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** A typed duration in ms: `500ms`, `30s`, `5m`, `1h`, without a unit seconds; null for any other text. */
export function parseDuration(text: string): number | null {
  const [, number, unit = 's'] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)?$/.exec(text) ?? [];
  return number === undefined ? null : Math.round(Number(number) * (UNITS_MS[unit] ?? Number.NaN));
}
