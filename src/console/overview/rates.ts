import { useEffect, useRef, useState } from 'preact/hooks';
import { useResource } from '../api/resource.ts';
import { metrics, type Sample, sumOf } from '../api/team.ts';
import { nowMs } from '../base/clock.ts';

const REFRESH_MS = 5_000;
/** Points that are kept: an hour of them. */
const POINTS_MAX = 720;
const MINUTE_MS = 60_000;

/** What is counted, by the name of its line. */
export type Counts = Record<string, (samples: Sample[]) => number>;

/** Rates over time since the page was opened: times in seconds, then a list per minute for each of the counts. */
export interface Rates {
  data: [number[], ...number[][]];
  latest: Sample[] | null;
  /** Why there are none; null where there are. */
  problem: string | null;
}

/** Rates of the manager's counters, per minute, from what `/metrics` says every few seconds. */
export function useRates(counts: Counts): Rates {
  const read = useResource('metrics', metrics, REFRESH_MS);
  const last = useRef<{ at_ms: number; values: number[] } | null>(null);
  const counting = useRef(counts);
  const [data, setData] = useState<[number[], ...number[][]]>([[], ...Object.keys(counts).map(() => [])]);
  const samples = read.data;
  useEffect(() => {
    if (samples === null) return;
    const at_ms = nowMs();
    const values = Object.values(counting.current).map((countOf) => countOf(samples));
    const before = last.current;
    last.current = { at_ms, values };
    // A counter that falls was begun anew: another replica has answered, or the manager was started again.
    if (before === null || values.some((value, index) => value < (before.values[index] as number))) return;
    const minutes = (at_ms - before.at_ms) / MINUTE_MS;
    setData(([times, ...lists]) => [
      [...times, at_ms / 1_000].slice(-POINTS_MAX),
      ...lists.map((list, index) =>
        [...list, ((values[index] as number) - (before.values[index] as number)) / minutes].slice(
          -POINTS_MAX,
        ),
      ),
    ]);
  }, [samples]);
  return { data, latest: samples, problem: read.problem?.message ?? null };
}

/** The sum of a metric, as a count. */
export function total(name: string, labels?: Record<string, string>): (samples: Sample[]) => number {
  return (samples) => sumOf(samples, `sandbox_manager_${name}`, labels);
}
