/** Windows close at every full hour at the latest, in ms. Source: contract section 7, "Usage". */
export const HOUR_MS = 60 * 60 * 1000;

/** A span of wall time in ms since the epoch, without its end. */
export interface Span {
  start_ms: number;
  end_ms: number;
}

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
