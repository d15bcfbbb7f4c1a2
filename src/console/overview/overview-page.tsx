import { MANAGED_STATUSES } from '../../contract/words.ts';
import { useResource } from '../api/resource.ts';
import { sandboxes } from '../api/sandboxes.ts';
import { sumOf, team } from '../api/team.ts';
import { count, decimal, duration } from '../base/format.ts';
import { linkTo } from '../base/router.ts';
import { StateBadge } from '../parts/badge.tsx';
import { Chart } from '../parts/chart.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Empty } from '../parts/notes.tsx';
import { Gauge } from '../quotas/gauge.tsx';
import { amount, hourly } from '../usage/hours.ts';
import { type Counts, type Rates, total, useRates } from './rates.ts';
import { readiness, Trouble } from './readiness.tsx';

/** Each of the counts below is a request that the team is charged for. */
const REFRESH_MS = 15_000;
const SLOW_MS = 30_000;
const RUNTIME = 'sandbox.runtime_mib_milliseconds';

const COUNTS: Counts = {
  delivered: total('delivery_attempts_total', { outcome: 'delivered' }),
  failed: (samples) =>
    total('delivery_attempts_total')(samples) -
    total('delivery_attempts_total', { outcome: 'delivered' })(samples),
  claimed: total('claims_total', { result: 'claimed' }),
  refused: (samples) =>
    total('claims_total')(samples) - total('claims_total', { result: 'claimed' })(samples),
};

/** How things are: sandboxes, quotas, deliveries, claims and usage. */
export function OverviewPage() {
  const rates = useRates(COUNTS);
  const ready = useResource('readyz', readiness, SLOW_MS);
  const quotas = useResource('quotas', team.quotas, REFRESH_MS);
  return (
    <div class="page">
      <header class="page-head">
        <h1>Overview</h1>
      </header>
      {ready.data && <Trouble facts={ready.data} />}
      <ByStatus />
      <div class="grid">
        <section class="panel" aria-label="Quotas">
          <div class="panel-head">
            <h2>Quotas</h2>
            <div class="actions">
              <a href={linkTo(['quotas'])}>All</a>
            </div>
          </div>
          <div class="panel-body stack">
            <Loaded resource={quotas}>
              {(all) => (
                <>
                  {all.map((quota) => (
                    <Gauge key={quota.dimension} quota={quota} />
                  ))}
                </>
              )}
            </Loaded>
          </div>
        </section>
        <RateChart
          title="Deliveries per minute"
          rates={rates}
          good={0}
          bad={1}
          words={['delivered', 'not delivered']}
        />
        <RateChart title="Claims per minute" rates={rates} good={2} bad={3} words={['claimed', 'refused']} />
        <Outbox rates={rates} />
        <Usage />
      </div>
    </div>
  );
}

function ByStatus() {
  const counts = useResource(
    'by status',
    (signal) =>
      Promise.all(
        MANAGED_STATUSES.map(async (status) => ({
          status,
          count: (await sandboxes.list({ status, limit: 1, offset: 0 }, signal)).count,
        })),
      ),
    REFRESH_MS,
  );
  return (
    <Loaded resource={counts}>
      {(all) => (
        <div class="tiles">
          {all.map(({ status, count: number }) => (
            <a key={status} class="tile" href={linkTo(['sandboxes'], { status })}>
              <strong>{count(number)}</strong>
              <span>
                <StateBadge state={status} />
              </span>
            </a>
          ))}
        </div>
      )}
    </Loaded>
  );
}

interface RateProps {
  title: string;
  rates: Rates;
  /** The places of its two lines among the counts. */
  good: number;
  bad: number;
  words: readonly [good: string, bad: string];
}

function RateChart({ title, rates, good, bad, words }: RateProps) {
  const { data, problem } = rates;
  const lists = [data[good + 1] ?? [], data[bad + 1] ?? []];
  const [now_good = 0, now_bad = 0] = lists.map((list) => list.at(-1) ?? 0);
  return (
    <section class="panel" aria-label={title}>
      <div class="panel-head">
        <h2>{title}</h2>
        <span class="muted">all teams of this replica</span>
        <div class="actions number">
          <span class="badge is-good">
            {decimal(now_good)} {words[0]}
          </span>
          <span class={`badge ${now_bad > 0 ? 'is-bad' : 'is-idle'}`}>
            {decimal(now_bad)} {words[1]}
          </span>
        </div>
      </div>
      <div class="panel-body">
        {problem === null ? (
          <Chart
            label={`${title}: ${decimal(now_good)} ${words[0]}, ${decimal(now_bad)} ${words[1]}`}
            series={[
              { label: words[0], color: 'good' },
              { label: words[1], color: 'bad' },
            ]}
            data={[data[0], ...lists] as [number[], ...number[][]]}
            height={150}
            format={decimal}
          />
        ) : (
          <Empty title="No figures">{problem}</Empty>
        )}
      </div>
    </section>
  );
}

/** What the manager's outbox is told by; of one that works, the last is 0. */
const FIGURES: readonly [name: string, text: string, show: (value: number) => string][] = [
  ['outbox_records', 'undelivered', count],
  ['outbox_oldest_pending_seconds', 'the oldest waits', (value) => duration(value * 1_000)],
  ['endpoints_owned', 'endpoints here', count],
  ['endpoints_backing_off', 'in backoff', count],
  ['endpoints_rejecting', 'rejecting', count],
];

function Outbox({ rates: { latest } }: { rates: Rates }) {
  return (
    <section class="panel" aria-label="The manager's outbox">
      <div class="panel-head">
        <h2>The manager's outbox</h2>
        <span class="muted">all teams</span>
        <div class="actions">
          <a href={linkTo(['deliveries'])}>The team's</a>
        </div>
      </div>
      <div class="panel-body tiles">
        {FIGURES.map(([name, text, show]) => (
          <div key={name} class="stack-small">
            <strong class="large number">
              {latest === null ? '–' : show(sumOf(latest, `sandbox_manager_${name}`))}
            </strong>
            <span class="muted">{text}</span>
          </div>
        ))}
      </div>
    </section>
  );
}

function Usage() {
  const windows = useResource('usage overview', (signal) => team.windows(RUNTIME, signal, () => {}), SLOW_MS);
  return (
    <section class="panel" aria-label="Usage of the last hours">
      <div class="panel-head">
        <h2>Memory leased, by the hour</h2>
        <div class="actions">
          <a href={linkTo(['usage'])}>All</a>
        </div>
      </div>
      <div class="panel-body">
        <Loaded resource={windows}>
          {({ windows: all }) =>
            all.length === 0 ? (
              <Empty title="No closed window yet">The first closes at the full hour.</Empty>
            ) : (
              <Chart
                label={`Memory leased: ${amount(
                  RUNTIME,
                  all.reduce((sum, { value }) => sum + value, 0),
                )} in all`}
                series={[{ label: 'leased', color: 'accent-text', is_bars: true }]}
                data={hourly(all)}
                height={150}
                format={(value) => amount(RUNTIME, value)}
              />
            )
          }
        </Loaded>
      </div>
    </section>
  );
}
