import type { UsageWindow } from '../../client/manager-client.ts';
import { LIST_LIMIT_MAX } from '../../contract/defaults.ts';
import type { WindowType } from '../../contract/words.ts';
import { manager } from './client.ts';
import { ROOT } from './connection.ts';

/** Most windows that are read for a chart: more would take a browser too long. */
const WINDOWS_MAX = 20_000;

/** All closed windows, or the newest of them. */
export interface Windows {
  windows: UsageWindow[];
  /** Older ones were left out. */
  is_cut: boolean;
}

/** What a manager says of a team. Contract section 7, "Quota status" and "Usage". */
export const team = {
  quotas: (signal: AbortSignal) => manager.GET('/api/v1/quotas', { signal }),
  /** Reads windows from the oldest on; calls `onCount` after each page. */
  async windows(
    window_type: WindowType,
    signal: AbortSignal,
    onCount: (count: number) => void,
  ): Promise<Windows> {
    let windows: UsageWindow[] = [];
    let is_cut = false;
    for (let cursor: string | undefined; ; ) {
      const query = { window_type, limit: LIST_LIMIT_MAX, ...(cursor === undefined ? {} : { cursor }) };
      const page = await manager.GET('/api/v1/usage/windows', { query, signal });
      windows = windows.concat(page.windows);
      if (windows.length > WINDOWS_MAX) {
        windows = windows.slice(-WINDOWS_MAX);
        is_cut = true;
      }
      onCount(windows.length);
      if (page.windows.length < LIST_LIMIT_MAX) return { windows, is_cut };
      cursor = page.next_cursor;
    }
  },
};

/** One value of `/metrics` with its labels. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** The figures of the replica that answers, over all teams. Rejects where `/metrics` is kept from browsers. */
export async function metrics(signal: AbortSignal): Promise<Sample[]> {
  const response = await fetch(new URL('metrics', ROOT), { cache: 'no-store', signal });
  if (!response.ok) throw new Error('The figures of the manager cannot be read from here.');
  return samplesOf(await response.text());
}

/** The samples in Prometheus's text format. */
export function samplesOf(text: string): Sample[] {
  return text.split('\n').flatMap((line): Sample[] => {
    const [, name, labels = '', value = ''] = SAMPLE.exec(line) ?? [];
    if (name === undefined) return [];
    const pairs = [...labels.matchAll(LABEL)].map(([, key = '', each = '']) => [
      key,
      each.replace(/\\(.)/g, '$1'),
    ]);
    return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }];
  });
}

/** The sum of a metric's samples with these labels. */
export function sumOf(samples: Sample[], name: string, labels: Record<string, string> = {}): number {
  const wanted = Object.entries(labels);
  return samples
    .filter((each) => each.name === name && wanted.every(([key, value]) => each.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0);
}
