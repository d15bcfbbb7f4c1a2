import type { QuotaStatus } from '../../contract/quotas.ts';
import { QUOTA_ROWS } from '../api/row-kinds.ts';
import { soundRows, tellLeftOut } from '../api/sound-rows.ts';
import type { ManagerContext } from '../context.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { printable } from '../terminal/printable.ts';
import { duration } from '../terminal/quantity.ts';
import { table } from '../terminal/table.ts';

/** Shows the team's quotas, or one of them. Contract section 7, "Quota status". */
export async function quota(
  { manager, out, err, json }: ManagerContext,
  dimension?: string,
): Promise<ExitCode> {
  const answer =
    dimension === undefined
      ? await manager.GET('/api/v1/quotas')
      : await manager.GET('/api/v1/quotas/{dimension}', { path: { dimension } });
  if (json) {
    await out.line(JSON.stringify(answer));
    return EXIT.ok;
  }
  const { rows, left_out } = await soundRows<QuotaStatus>([answer].flat(), QUOTA_ROWS);
  await out.lines(quotaTable(rows, out.columns));
  return tellLeftOut(err, left_out);
}

function quotaTable(quotas: QuotaStatus[], columns: number | null): string[] {
  return table(
    [
      { title: 'DIMENSION', cell: ({ dimension }) => printable(dimension) },
      { title: 'LIMIT', cell: limitText },
      { title: 'BURST', cell: ({ burst_value }) => number(burst_value), spare: 2 },
      { title: 'IN USE', cell: ({ current }) => number(current) },
      { title: 'LEFT', cell: ({ remaining }) => number(remaining), spare: 1 },
      {
        title: 'SOURCE',
        cell: ({ source, enforced }) => printable(`${source}${enforced ? '' : ', not enforced'}`),
      },
    ],
    quotas,
    columns,
  );
}

function limitText({ unlimited, limit_value, interval_ms, unit }: QuotaStatus): string {
  if (unlimited) return 'unlimited';
  const per = interval_ms === null ? '' : ` per ${duration(interval_ms)}`;
  return printable(`${limit_value} ${unit}${per}`);
}

function number(value: number | null): string {
  return value === null ? '-' : String(value);
}
