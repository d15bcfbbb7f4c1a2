import { SANDBOX_PAGE_MAX } from '../../contract/limits.ts';
import type { ManagedSandbox } from '../../contract/sandboxes.ts';
import type { ManagedStatus } from '../../contract/words.ts';
import { SANDBOX_ROWS } from '../api/row-kinds.ts';
import { soundRows, tellLeftOut } from '../api/sound-rows.ts';
import type { ManagerContext } from '../context.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import type { ListedSandboxes } from './sandbox-id.ts';
import { sandboxTable } from './sandbox-table.ts';

/** Which sandboxes to list; `limit` is the most, from 1. */
export interface SandboxListOptions {
  status?: ManagedStatus | undefined;
  template?: string | undefined;
  /** Pairs `key:text`, all of which must match. */
  metadata?: string[] | undefined;
  limit: number;
}

/** Lists the team's sandboxes, newest first. Contract section 7, `GET /api/v1/sandboxes`. */
export async function printSandboxes(
  context: ManagerContext,
  options: SandboxListOptions,
): Promise<ExitCode> {
  const { out, err, json } = context;
  const page = await pageOf(context, options);
  if (json) {
    await out.line(JSON.stringify(page));
    return EXIT.ok;
  }
  const { rows, left_out } = await soundRows<ManagedSandbox>(page.sandboxes, SANDBOX_ROWS);
  if (page.sandboxes.length === 0) await err.line('no sandboxes');
  else await out.lines(sandboxTable(rows, out));
  if (page.has_more) {
    await err.line(`${page.sandboxes.length} of ${page.count} sandboxes; --limit shows more`);
  }
  return tellLeftOut(err, left_out);
}

/** Up to `limit` sandboxes, over several pages where necessary. */
async function pageOf({ manager }: ManagerContext, options: SandboxListOptions): Promise<ListedSandboxes> {
  const sandboxes: ManagedSandbox[] = [];
  const known = new Set<string>();
  let offset = 0;
  for (;;) {
    const limit = Math.min(options.limit - sandboxes.length, SANDBOX_PAGE_MAX);
    const { status, template: template_id, metadata } = options;
    const page: ListedSandboxes = await manager.GET('/api/v1/sandboxes', {
      query: { status, template_id, metadata, limit, offset },
    });
    // What is claimed meanwhile moves the rest to later pages.
    const fresh = page.sandboxes.filter((each) => !known.has(each?.id)).slice(0, limit);
    for (const each of fresh) if (each?.id) known.add(each.id);
    sandboxes.push(...fresh);
    offset += page.sandboxes.length;
    const has_more = page.has_more && fresh.length > 0;
    if (!has_more || sandboxes.length >= options.limit) {
      return { sandboxes, count: page.count, has_more: page.has_more && sandboxes.length < page.count };
    }
  }
}
