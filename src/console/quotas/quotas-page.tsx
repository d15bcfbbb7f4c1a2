import type { QuotaStatus } from '../../contract/quotas.ts';
import { useResource } from '../api/resource.ts';
import { sumOf, team } from '../api/team.ts';
import { count } from '../base/format.ts';
import { type Counts, useRates } from '../overview/rates.ts';
import { Chart } from '../parts/chart.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Empty } from '../parts/notes.tsx';
import { Gauge } from './gauge.tsx';
import { limitOf, nameOf, quantityOf, SOURCES } from './quota-words.ts';

const REFRESH_MS = 5_000;
const REFUSALS: Counts = {
  refused: (samples) => sumOf(samples, 'sandbox_manager_quota_decisions_total', { outcome: 'refused' }),
};

/** The team's quotas: limit, source, use, and refusals. */
export function QuotasPage() {
  const quotas = useResource('quotas', team.quotas, REFRESH_MS);
  const { data, latest, problem } = useRates(REFUSALS);
  const refusedOf = (dimension: string) =>
    latest === null
      ? null
      : sumOf(latest, 'sandbox_manager_quota_decisions_total', { dimension, outcome: 'refused' });
  return (
    <div class="page">
      <header class="page-head">
        <h1>Quotas</h1>
      </header>
      <Loaded resource={quotas}>
        {(all) => (
          <>
            <section class="panel" aria-label="In use">
              <div class="panel-body stack">
                {all
                  .filter(({ kind }) => kind === 'capacity')
                  .map((quota) => (
                    <Gauge key={quota.dimension} quota={quota} />
                  ))}
              </div>
            </section>
            <QuotaTable quotas={all} refusedOf={refusedOf} />
          </>
        )}
      </Loaded>
      <section class="panel" aria-label="Refusals">
        <div class="panel-head">
          <h2>Refusals per minute</h2>
          <span class="muted">of all teams, by the replica that answers, since this page was opened</span>
        </div>
        <div class="panel-body">
          {problem === null ? (
            <Chart
              label={`Refusals per minute: ${data[1]?.at(-1)?.toFixed(1) ?? 'none yet'}`}
              series={[{ label: 'refused', color: 'bad' }]}
              data={data}
              format={count}
            />
          ) : (
            <Empty title="No figures">{problem}</Empty>
          )}
        </div>
      </section>
    </div>
  );
}

interface TableProps {
  quotas: readonly QuotaStatus[];
  refusedOf(dimension: string): number | null;
}

function QuotaTable({ quotas, refusedOf }: TableProps) {
  return (
    <section class="panel" aria-label="Dimensions">
      <div class="table-frame" role="group" aria-label="Table" tabIndex={0}>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">Dimension</th>
              <th scope="col">Limit</th>
              <th scope="col">Source</th>
              <th scope="col" class="is-right">
                Now
              </th>
              <th scope="col" class="is-right">
                Left
              </th>
              <th scope="col" class="is-right">
                Refused (all teams)
              </th>
              <th scope="col">Enforced</th>
            </tr>
          </thead>
          <tbody>
            {quotas.map((quota) => {
              const { dimension, current, remaining, source, enforced } = quota;
              const refused = refusedOf(dimension);
              return (
                <tr key={dimension}>
                  <td>
                    {nameOf(dimension)} <code class="muted">{dimension}</code>
                  </td>
                  <td class="number">{limitOf(quota)}</td>
                  <td class="muted">{SOURCES[source] ?? source}</td>
                  <td class="is-right number">{current === null ? '–' : quantityOf(quota, current)}</td>
                  <td class="is-right number">{remaining === null ? '–' : quantityOf(quota, remaining)}</td>
                  <td class="is-right number">{refused === null ? '–' : count(refused)}</td>
                  <td>{enforced ? 'yes' : <span class="muted">no: this network is not metered</span>}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
