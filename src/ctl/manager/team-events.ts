import { LIST_LIMIT_MAX } from '../../contract/defaults.ts';
import { type ReconnectingReader, readToEnd } from '../api/reconnecting.ts';
import { FEED_ROWS } from '../api/row-kinds.ts';
import { untilBroken } from '../api/server-sent-events.ts';
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
    const page: FeedPage = await context.client.call('GET', '/events', { query });
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
  const reader = new FeedReader(context, cursor);
  await readToEnd(reader, interrupted, () => context.err.line('connection lost; retrying'));
  return EXIT.ok;
}

/** Reads the feed over as many connections as necessary; it has no end. */
class FeedReader implements ReconnectingReader<never> {
  connected = false;
  readonly #context: ManagerContext;
  #position: string | undefined;

  constructor(context: ManagerContext, cursor: string | undefined) {
    this.#context = context;
    this.#position = cursor;
  }

  async read(signal: AbortSignal): Promise<'lost'> {
    const type = 'text/event-stream';
    const last = this.#position === undefined ? {} : { 'last-event-id': this.#position };
    const headers = { accept: type, ...last };
    const body = await this.#context.client.stream('/events', { type, headers, signal });
    this.connected = true;
    try {
      for await (const { id, data } of untilBroken(body)) {
        await print(this.#context, data);
        this.#position = id;
      }
      return 'lost';
    } finally {
      body.destroy();
    }
  }
}

function print({ out, json }: ManagerContext, body: string): Promise<void> {
  if (json) return out.json(jsonOnOneLine(body));
  const event = parseEvent(body);
  if (!event) return out.line(printable(body));
  const { sandbox_id } = JSON.parse(body) as { sandbox_id?: unknown };
  return out.line(eventLine(event, out, [printable(String(sandbox_id))]));
}
