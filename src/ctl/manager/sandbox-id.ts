import type { ManagerClient } from '../../client/manager-client.ts';
import { isSandboxId } from '../../contract/ids.ts';
import type { ManagedSandbox } from '../../contract/sandboxes.ts';
import { SANDBOX_ROWS } from '../api/row-kinds.ts';
import { soundRows } from '../api/sound-rows.ts';
import type { ManagerContext } from '../context.ts';
import { EXIT, Failure } from '../failure.ts';
import { sandboxTable } from './sandbox-table.ts';

const PREFIX = 'sbx_';
const BEGINNING = /^(?:sbx_)?([0-9a-f-]{0,36})$/;
/** Most entries of a page. Contract section 7, `GET /api/v1/sandboxes`. */
const PAGE = 200;
/** Far more than halving a list of millions takes. */
const REQUESTS_MAX = 60;
const SHOWN_MAX = 10;

/** A page of the list of sandboxes. */
export interface ListedSandboxes {
  sandboxes: ManagedSandbox[];
  count: number;
  has_more: boolean;
}

/** Sandboxes whose ids begin with a text, and whether there may be more of them. */
interface Found {
  sandboxes: ManagedSandbox[];
  has_more: boolean;
}

/** The full id of the sandbox that is meant; a usage error where none is. */
export async function selectedSandbox(context: ManagerContext, given = context.sandbox_id): Promise<string> {
  if (given !== null) return fullSandboxId(context, given);
  throw new Failure(
    EXIT.usage,
    'it is unknown which sandbox is meant: --sandbox ID or SANDBOXCTL_SANDBOX names one, and sandbox list shows them',
  );
}

/**
 * The sandbox id that begins with a text; `sbx_` may be left out. A whole id is returned as it is. Lists the sandboxes on
 * stderr and throws `Failure` where several begin so; throws it where none does.
 */
export async function fullSandboxId({ manager, err }: ManagerContext, text: string): Promise<string> {
  if (isSandboxId(text)) return text;
  const [, digits] = BEGINNING.exec(text) ?? [];
  if (digits === undefined) throw new Failure(EXIT.usage, `${JSON.stringify(text)} is no sandbox id`);
  const beginning = PREFIX + digits;
  const { sandboxes, has_more } = await sandboxesBeginning(manager, beginning);
  const [only] = sandboxes;
  if (only === undefined) throw new Failure(EXIT.failed, `no sandbox id begins with ${beginning}`);
  if (sandboxes.length === 1 && !has_more) return only.id;
  const { rows } = await soundRows<ManagedSandbox>(sandboxes.slice(0, SHOWN_MAX), SANDBOX_ROWS);
  await err.lines(sandboxTable(rows, err));
  const count = `${has_more ? 'at least ' : ''}${sandboxes.length}`;
  throw new Failure(EXIT.failed, `${count} sandbox ids begin with ${beginning}: give more of it`);
}

/**
 * The sandboxes whose ids begin with a text. Ids begin with their time and the list is newest first, so that it is halved
 * until a page shows them with their neighbours: few requests, however many sandboxes there are.
 */
export async function sandboxesBeginning(manager: ManagerClient, beginning: string): Promise<Found> {
  const keyOf = (each: ManagedSandbox | null) => String(each?.id ?? '').slice(0, beginning.length);
  let offset = 0;
  let [from, to] = [0, Number.POSITIVE_INFINITY];
  for (let requests = 0; requests < REQUESTS_MAX; requests++) {
    const { sandboxes: page, count } = await sandboxPage(manager, offset);
    const named = page.filter((each) => typeof each?.id === 'string');
    const [first, last] = [named[0], named.at(-1)];
    to = Math.min(to, count);
    if (first === undefined || last === undefined || keyOf(first) < beginning) to = offset;
    else if (keyOf(last) > beginning) from = offset + page.length;
    else {
      const sandboxes = page.filter((each) => keyOf(each) === beginning && isSandboxId(each.id));
      const is_cut_before = offset > 0 && keyOf(first) === beginning;
      const is_cut_after = offset + page.length < count && keyOf(last) === beginning;
      const has_more = is_cut_before || is_cut_after;
      if (sandboxes.length !== 1 || !has_more) return { sandboxes, has_more };
      // The next page shows the one that was found in its middle.
      from = Math.max(0, offset + page.findIndex((each) => keyOf(each) === beginning) - PAGE / 2);
      offset = from;
      continue;
    }
    if (from >= to) break;
    offset = Math.max(from, Math.floor((from + to - PAGE) / 2));
  }
  return { sandboxes: [], has_more: false };
}

/** A page of the team's sandboxes, newest first. */
async function sandboxPage(manager: ManagerClient, offset: number): Promise<ListedSandboxes> {
  return manager.GET('/api/v1/sandboxes', { query: { limit: PAGE, offset } });
}
