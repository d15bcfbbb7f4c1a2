/** Windows close at every full hour at the latest, in ms. Source: contract section 7, "Usage". */
export const HOUR_MS = 60 * 60 * 1000;

/** A span of wall time in ms since the epoch, without its end. */
export interface Span {
  start_ms: number;
  end_ms: number;
}

/** What a counter showed at a time (wall time in ms). */
interface Count {
  value: number;
  at_ms: number;
}

/** The bytes of a span of time. */
type ByteSpan = Span & { value: number };

/** The start of the hour that contains a time (ms since the epoch). */
export function startOfHour(at_ms: number): number {
  return at_ms - (at_ms % HOUR_MS);
}

/** Splits a span at every full hour; returns none if it is empty or negative, as after a clock went back. */
export function hourlySpans(start_ms: number, end_ms: number): Span[] {
  const spans: Span[] = [];
  for (let at_ms = start_ms; at_ms < end_ms; ) {
    const next_ms = Math.min(end_ms, startOfHour(at_ms) + HOUR_MS);
    spans.push({ start_ms: at_ms, end_ms: next_ms });
    at_ms = next_ms;
  }
  return spans;
}

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
