import { hourlySpans, type Span } from './spans.ts';

/** What a counter showed at a time (wall time in ms). */
export interface Count {
  value: number;
  at_ms: number;
}

/** The bytes of a span of time. */
export type ByteSpan = Span & { value: number };

/**
 * The windows for the bytes between `counted` and the present count, over the time from `from_ms` to `until_ms`. Bytes
 * belong to the hour in which they were first seen: those up to the count seen before to its hour, the others to the last
 * one. Windows without bytes are left out; all values together are exactly the bytes, even after a clock went back.
 */
export function byteSpans(
  { value: counted, at_ms: from_ms }: Count,
  seen: Count,
  { value, at_ms: until_ms }: Count,
): ByteSpan[] {
  const hours = hourlySpans(from_ms, until_ms);
  // A window is never empty: some bytes may have no time of their own.
  if (hours.length === 0) hours.push({ start_ms: until_ms - 1, end_ms: until_ms });
  const seen_in = Math.max(
    0,
    hours.findLastIndex(({ start_ms }) => start_ms <= seen.at_ms),
  );
  const windows = hours.map((hour) => ({ ...hour, value: 0 }));
  (windows[seen_in] as ByteSpan).value += seen.value - counted;
  (windows.at(-1) as ByteSpan).value += value - seen.value;
  return windows.filter((window) => window.value > 0);
}
