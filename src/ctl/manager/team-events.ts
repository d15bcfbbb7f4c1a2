import { LIST_LIMIT_MAX } from '../../contract/defaults.ts';
import { following, unlessInterrupted } from '../api/following.ts';
import { FEED_ROWS } from '../api/row-kinds.ts';
import { soundRows, tellLeftOut } from '../api/sound-rows.ts';
import type { ManagerContext } from '../context.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { jsonOnOneLine, parseEvent } from '../listen/received-event.ts';
import { eventLine } from '../terminal/event-line.ts';
import { printable } from '../terminal/printable.ts';

/** A page of the feed. */
interface FeedPage {
  events: unknown[];
  next_cursor: string;
}

/**
 * Prints the team's kept lifecycle events after `cursor` (default: all), and on stderr the cursor that the next ones come
 * after. Contract section 7, `GET /api/v1/events`.
 */
export async function teamEvents(context: ManagerContext, cursor?: string): Promise<ExitCode> {
  let position = cursor;
  let exit_code: ExitCode = EXIT.ok;
  for (;;) {
    const query = { cursor: position, limit: LIST_LIMIT_MAX };
    const page: FeedPage = await context.manager.GET('/api/v1/events', { query });
    const { rows, left_out } = await soundRows<{ body: string }>(page.events, FEED_ROWS);
    for (const { body } of rows) await print(context, body);
    if (left_out.length > 0) exit_code = await tellLeftOut(context.err, left_out);
    const is_end = page.events.length < LIST_LIMIT_MAX || page.next_cursor === position;
    position = page.next_cursor;
    if (is_end) break;
  }
  await context.err.line(`next: --cursor ${position}`);
  return exit_code;
}

/**
 * Prints the team's lifecycle events as they are committed until `interrupted`, after `cursor` (default: now). A lost
 * connection is reopened where it ended.
 */
export async function followTeamEvents(
  context: ManagerContext,
  interrupted: AbortSignal,
  cursor?: string,
): Promise<ExitCode> {
  const options = following(interrupted, () => context.err.line('connection lost; retrying'));
  await unlessInterrupted(interrupted, async () => {
    for await (const { body } of context.manager.events({ ...options, cursor })) await print(context, body);
  });
  return EXIT.ok;
}

function print({ out, json }: ManagerContext, body: string): Promise<void> {
  if (json) return out.json(jsonOnOneLine(body));
  const event = parseEvent(body);
  if (!event) return out.line(printable(body));
  const { sandbox_id } = JSON.parse(body) as { sandbox_id?: unknown };
  return out.line(eventLine(event, out, [printable(String(sandbox_id))]));
}
