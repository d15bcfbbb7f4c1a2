/** Windows close at every full hour at the latest. Source: contract section 7, "Usage". */
const HOUR_MS = 60 * 60 * 1000;

/** A stretch of wall time; its end is not part of it. */
export interface Span {
  start_ms: number;
  end_ms: number;
}

/** The full hour that a time is in, or at. */
export function startOfHour(at_ms: number): number {
  return at_ms - (at_ms % HOUR_MS);
}

/** A stretch cut at every full hour; none where it is empty, or where a clock went back. */
export function hourlySpans(start_ms: number, end_ms: number): Span[] {
  const spans: Span[] = [];
  for (let at_ms = start_ms; at_ms < end_ms; ) {
    const next_ms = Math.min(end_ms, startOfHour(at_ms) + HOUR_MS);
    spans.push({ start_ms: at_ms, end_ms: next_ms });
    at_ms = next_ms;
  }
  return spans;
}
