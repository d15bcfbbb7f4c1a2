import { LIST_LIMIT_MAX } from '../../contract/defaults.ts';
import type { UsagePage, UsageWindow } from '../../contract/usage.ts';
import type { WindowType } from '../../contract/words.ts';
import { WINDOW_ROWS } from '../api/row-kinds.ts';
import { soundRows, tellLeftOut } from '../api/sound-rows.ts';
import type { ManagerContext } from '../context.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { printable } from '../terminal/printable.ts';
import { moment } from '../terminal/quantity.ts';
import { table } from '../terminal/table.ts';

/** Which windows to list; `limit` is the most, from 1. */
export interface UsageOptions {
  cursor?: string | undefined;
  type?: WindowType | undefined;
  limit: number;
}

/** Lists the team's closed usage windows in commit order, and says where the next ones begin. Contract section 7, "Usage". */
export async function usage(context: ManagerContext, options: UsageOptions): Promise<ExitCode> {
  const { out, err, json } = context;
  const page = await pageOf(context, options);
  if (json) {
    await out.line(JSON.stringify(page));
    return EXIT.ok;
  }
  const { rows, left_out } = await soundRows<UsageWindow>(page.windows, WINDOW_ROWS);
  if (page.windows.length === 0) await err.line('no usage windows');
  else await out.lines(usageTable(rows, out.columns));
  await err.line(`next: --cursor ${page.next_cursor}`);
  return tellLeftOut(err, left_out);
}

/** Up to `limit` windows, over several pages where necessary. */
async function pageOf({ manager }: ManagerContext, options: UsageOptions): Promise<UsagePage> {
  const windows: UsageWindow[] = [];
  let cursor = options.cursor;
  for (;;) {
    const limit = Math.min(options.limit - windows.length, LIST_LIMIT_MAX);
    const page: UsagePage = await manager.GET('/api/v1/usage/windows', {
      query: { cursor, limit, window_type: options.type },
    });
    const { next_cursor } = page;
    windows.push(...page.windows.slice(0, limit));
    cursor = next_cursor;
    if (page.windows.length < limit || windows.length >= options.limit) return { windows, next_cursor };
  }
}

function usageTable(windows: UsageWindow[], columns: number | null): string[] {
  return table(
    [
      { title: 'SANDBOX ID', cell: ({ sandbox_id }) => printable(sandbox_id) },
      { title: 'TYPE', cell: ({ window_type }) => printable(window_type), spare: 1 },
      { title: 'FROM', cell: ({ window_start }) => moment(window_start), spare: 2 },
      { title: 'TO', cell: ({ window_end }) => moment(window_end), spare: 3 },
      { title: 'VALUE', cell: ({ value, unit }) => printable(`${value} ${unit}`) },
    ],
    windows,
    columns,
  );
}
