import { useMemo, useState } from 'preact/hooks';
import type { UsageWindow } from '../../contract/usage.ts';
import { WINDOW_TYPES } from '../../contract/words.ts';
import { useResource } from '../api/resource.ts';
import { team } from '../api/team.ts';
import { count, plural, shortId } from '../base/format.ts';
import { linkTo, setQuery, useRoute } from '../base/router.ts';
import { Chart } from '../parts/chart.tsx';
import { csvLine, save } from '../parts/download.ts';
import { Select } from '../parts/field.tsx';
import { Icon } from '../parts/icon.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Empty } from '../parts/notes.tsx';
import { Time } from '../parts/time.tsx';
import { amount, hourly, TITLES } from './hours.ts';

const SHOWN_MAX = 200;
const COLUMNS = [
  'window_id',
  'region_id',
  'cluster_id',
  'window_type',
  'subject_type',
  'subject_id',
  'sandbox_id',
  'window_start',
  'window_end',
  'value',
  'unit',
  'recorded_at',
] as const;

/** The team's closed usage windows: a chart by the hour, a table, and a file. */
export function UsagePage() {
  const { query } = useRoute();
  const [read, setRead] = useState(0);
  const type = WINDOW_TYPES.find((each) => each === query.get('type')) ?? 'sandbox.runtime_mib_milliseconds';
  const windows = useResource(`usage ${type}`, (signal) => team.windows(type, signal, setRead));
  return (
    <div class="page">
      <header class="page-head">
        <h1>Usage</h1>
        <Select
          label="Type"
          is_bare
          value={type}
          options={WINDOW_TYPES.map((each): [string, string] => [each, TITLES[each]])}
          onChange={(value) => setQuery({ type: value })}
        />
        <div class="actions">
          {windows.is_loading && (
            <span class="muted number" role="status">
              {plural(read, 'window')} read
            </span>
          )}
          <button type="button" class="button" data-key="r" onClick={windows.reload}>
            <Icon name="refresh" />
            Reload
          </button>
          <button
            type="button"
            class="button"
            disabled={windows.data === null}
            onClick={() => windows.data && saveCsv(type, windows.data.windows)}
          >
            <Icon name="down" />
            CSV
          </button>
        </div>
      </header>
      <Loaded resource={windows}>
        {({ windows: all, is_cut }) =>
          all.length === 0 ? (
            <section class="panel">
              <Empty title="No closed window yet">
                Windows close at every full hour, and when a sandbox is paused, changed or deleted.
              </Empty>
            </section>
          ) : (
            <Windows type={type} windows={all} is_cut={is_cut} />
          )
        }
      </Loaded>
    </div>
  );
}

interface WindowsProps {
  type: (typeof WINDOW_TYPES)[number];
  windows: readonly UsageWindow[];
  is_cut: boolean;
}

function Windows({ type, windows, is_cut }: WindowsProps) {
  const hours = useMemo(() => hourly(windows), [windows]);
  const total = windows.reduce((sum, { value }) => sum + value, 0);
  return (
    <>
      <section class="panel" aria-label="By the hour">
        <div class="panel-head">
          <h2>{TITLES[type]} by the hour</h2>
          <span class="muted">
            {amount(type, total)} in {plural(windows.length, 'window')}
            {is_cut && ': the newest; older ones are at the API'}
          </span>
        </div>
        <div class="panel-body">
          <Chart
            label={`${TITLES[type]}: ${amount(type, total)} in all, by the hour; the table below has the figures`}
            series={[{ label: TITLES[type], color: 'accent-text', is_bars: true }]}
            data={hours}
            height={220}
            format={(value) => amount(type, value)}
          />
        </div>
      </section>
      <section class="panel" aria-label="Windows">
        <div class="table-frame" role="group" aria-label="Table" tabIndex={0}>
          <table class="table">
            <thead>
              <tr>
                <th scope="col">Sandbox</th>
                <th scope="col">From</th>
                <th scope="col">To</th>
                <th scope="col" class="is-right">
                  Amount
                </th>
                <th scope="col" class="is-right">
                  Value
                </th>
              </tr>
            </thead>
            <tbody>
              {windows
                .slice(-SHOWN_MAX)
                .toReversed()
                .map((window) => (
                  <tr key={window.window_id}>
                    <td>
                      <a class="mono row-link" href={linkTo(['sandboxes', window.sandbox_id])}>
                        {shortId(window.sandbox_id)}
                      </a>
                    </td>
                    <td>
                      <Time at={window.window_start} />
                    </td>
                    <td>
                      <Time at={window.window_end} />
                    </td>
                    <td class="is-right number">{amount(type, window.value)}</td>
                    <td class="is-right number muted">{count(window.value)}</td>
                  </tr>
                ))}
            </tbody>
          </table>
        </div>
        {windows.length > SHOWN_MAX && (
          <p class="pager">
            The newest {SHOWN_MAX} are shown; the CSV file has all {count(windows.length)}.
          </p>
        )}
      </section>
    </>
  );
}

function saveCsv(type: string, windows: readonly UsageWindow[]): void {
  const rows = windows.map((window) => csvLine(COLUMNS.map((column) => window[column])));
  save(`usage-${type}.csv`, [csvLine(COLUMNS), ...rows]);
}
