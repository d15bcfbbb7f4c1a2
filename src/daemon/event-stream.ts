import type { HttpApp } from '../base/http-app.ts';
import { invalidField } from '../contract/errors.ts';
import type { Daemon } from './daemon.ts';
import { EventWriter, orGone } from './event-writer.ts';

/** Read at a time for one follower. */
const PAGE_RECORDS = 200;

/** `GET /events/stream`: every record as it is committed. Source: contract section 4. */
export function registerEventStream(app: HttpApp, daemon: Daemon): void {
  app.get('/api/v1/events/stream', async (request, reply) => {
    const { store } = daemon;
    const from = lastEventId(request.headers['last-event-id']) ?? (await store.lastSequence());
    const writer = new EventWriter(request, reply, daemon.clock);
    await follow(daemon, from, writer).catch(() => writer.cut());
  });
}

/** Reads what is kept after `sequence`, then waits for more; a slow reader holds up nobody. */
async function follow({ store }: Daemon, sequence: number, writer: EventWriter): Promise<void> {
  let last = sequence;
  while (!writer.gone.aborted) {
    const arrived = store.nextCommit();
    const records = await store.after(last, PAGE_RECORDS);
    for (const { sequence, event_type, body } of records) {
      last = sequence;
      await writer.write({ id: String(sequence), event: event_type, data: body });
      if (writer.gone.aborted) return;
    }
    if (records.length < PAGE_RECORDS) await orGone(arrived, writer.gone);
  }
}

function lastEventId(value: string | string[] | undefined): number | null {
  if (value === undefined) return null;
  if (typeof value !== 'string' || !/^\d{1,15}$/.test(value)) {
    throw invalidField('Last-Event-ID', 'must be a sequence');
  }
  return Number(value);
}
