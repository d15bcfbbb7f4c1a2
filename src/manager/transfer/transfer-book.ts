import { newId } from '../../base/ids.ts';
import { HOUR_MS, startOfHour } from '../usage/spans.ts';
import type { TransferCountRow } from './transfer-store.ts';

/** After so long without a byte a window is closed, in ms: what is billed is not to wait for the hour. */
export const QUIET_MS = 5 * 60_000;

/** The sandbox that bytes belong to; its team may be looked up later. */
export interface CarriedFor {
  sandbox_id: string;
  team_id: string | null;
}

/** The bytes of one sandbox that this replica has carried and that are in no closed window yet. */
interface Page extends Omit<TransferCountRow, 'team_id'> {
  team_id: string | null;
  /** As many as are kept in the database. */
  kept_bytes: number;
}

/**
 * Bytes that this replica has carried, by sandbox, until they are in closed windows. Times are wall time in ms.
 *
 * | A page is | Entered by | Left by |
 * |---|---|---|
 * | open: its bytes grow | `add` | `close`, where its hour is over or nothing has passed for 5 minutes |
 * | closing: its window is being written | `close` | `forget` |
 */
export class TransferBook {
  readonly #open = new Map<string, Page>();
  readonly #closing = new Map<string, Page>();

  /** Adds bytes that were carried between two looks. */
  add({ sandbox_id, team_id }: CarriedFor, bytes: number, since_ms: number, now_ms: number): void {
    let page = this.#open.get(sandbox_id);
    if (!page) {
      const window_id = newId('win_', now_ms);
      page = { window_id, sandbox_id, team_id, bytes: 0, kept_bytes: 0, started_ms: since_ms, seen_ms: 0 };
      this.#open.set(sandbox_id, page);
    }
    page.bytes += bytes;
    page.seen_ms = now_ms;
    page.team_id ??= team_id;
  }

  /** Sandboxes whose teams are not known yet. */
  unknown(): string[] {
    return [...this.#open.values()].flatMap(({ sandbox_id, team_id }) => (team_id ? [] : [sandbox_id]));
  }

  /** Notes the teams of sandboxes that `unknown` has named; what belongs to none, because nobody has recorded the sandbox, is dropped. */
  identify(sandbox_ids: string[], teams: ReadonlyMap<string, string>): void {
    for (const id of sandbox_ids) {
      const page = this.#open.get(id);
      if (!page) continue;
      page.team_id ??= teams.get(id) ?? null;
      if (page.team_id === null) this.#open.delete(id);
    }
  }

  /** What is to be kept, in the order of ids, so that two managers cannot wait for each other. */
  unkept(): TransferCountRow[] {
    const rows = [...this.#open.values()].flatMap(({ kept_bytes, team_id, ...page }) =>
      team_id !== null && page.bytes !== kept_bytes ? [{ ...page, team_id }] : [],
    );
    return rows.sort((a, b) => (a.window_id < b.window_id ? -1 : 1));
  }

  /** Notes what was kept, and what another replica had put into windows before: the rest begins a page of its own. */
  noteKept(rows: readonly TransferCountRow[], closed: ReadonlyMap<string, number>): void {
    for (const row of rows) {
      const page = this.#open.get(row.sandbox_id);
      if (page?.window_id !== row.window_id) continue;
      const in_window = closed.get(row.window_id);
      if (in_window === undefined) {
        page.kept_bytes = row.bytes;
        continue;
      }
      page.window_id = newId('win_', row.seen_ms);
      page.bytes -= in_window;
      page.kept_bytes = 0;
    }
  }

  /** Closes what is due, or all; returns the ids of the windows to write: of pages that are kept as they are. */
  close(now_ms: number, is_all = false): string[] {
    for (const [id, page] of this.#open) {
      const is_over = startOfHour(page.started_ms) < startOfHour(now_ms);
      if (!is_all && !is_over && now_ms - page.seen_ms < QUIET_MS) continue;
      if (page.team_id === null || page.kept_bytes !== page.bytes) continue;
      this.#open.delete(id);
      this.#closing.set(page.window_id, page);
    }
    return [...this.#closing.keys()];
  }

  /** Forgets pages whose windows are written. */
  forget(window_ids: readonly string[]): void {
    for (const id of window_ids) this.#closing.delete(id);
  }

  /** Whether a window is still this replica's to write. */
  has(window_id: string): boolean {
    if (this.#closing.has(window_id)) return true;
    return [...this.#open.values()].some((page) => page.window_id === window_id);
  }
}

/** The time of a count's window: from the look before its first byte to its last one, within one hour. */
export function windowTimes({ started_ms, seen_ms }: TransferCountRow): { start_ms: number; end_ms: number } {
  const hour_end_ms = startOfHour(started_ms) + HOUR_MS;
  return { start_ms: started_ms, end_ms: Math.min(hour_end_ms, Math.max(seen_ms, started_ms + 1)) };
}
