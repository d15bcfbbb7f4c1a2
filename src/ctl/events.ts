import type { StreamedEvent } from '../client/sandbox.ts';
import { following, unlessInterrupted } from './api/following.ts';
import type { Context } from './context.ts';
import { EXIT, type ExitCode, Failure } from './failure.ts';
import { jsonOnOneLine, parseEvent } from './listen/received-event.ts';
import { eventLine } from './terminal/event-line.ts';
import { printable } from './terminal/printable.ts';

/** Prints the stored events after `since`, up to the newest now. Contract section 4, `GET /events/stream`. */
export async function events(context: Context, since = 0): Promise<ExitCode> {
  const newest = await newestSequence(context);
  if (newest <= since) return EXIT.ok;
  const lost = new AbortController();
  const early = new Failure(EXIT.unreachable, `${context.shown} ended the stream before event #${newest}`);
  const onConnection = (is_connected: boolean) => void (is_connected || lost.abort(early));
  for await (const event of context.sandbox.events({ after: since, signal: lost.signal, onConnection })) {
    await print(context, event);
    if (event.sequence >= newest) break;
  }
  return EXIT.ok;
}

/**
 * Prints events as they are committed until `interrupted`, beginning with the stored ones after `since` (default:
 * none). A lost connection is reopened where it ended.
 */
export async function followEvents(
  context: Context,
  interrupted: AbortSignal,
  since?: number,
): Promise<ExitCode> {
  const after = since ?? (await newestSequence(context));
  const options = following(interrupted, () => context.err.line('connection lost; retrying'));
  await unlessInterrupted(interrupted, async () => {
    for await (const event of context.sandbox.events({ ...options, after })) await print(context, event);
  });
  return EXIT.ok;
}

function print({ out, json }: Context, { body }: StreamedEvent): Promise<void> {
  if (json) return out.json(jsonOnOneLine(body));
  const event = parseEvent(body);
  return out.line(event ? eventLine(event, out) : printable(body));
}

/** The highest stored sequence, 0 if there is none. Records of another sandbox have their own sequence. */
async function newestSequence({ sandbox }: Context): Promise<number> {
  const { deliveries } = await sandbox.GET('/api/v1/webhook/deliveries');
  const newest = deliveries.find((each) => Number.isSafeInteger(each?.sequence) && each.state !== 'foreign');
  return newest?.sequence ?? 0;
}
