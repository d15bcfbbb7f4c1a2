import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { HttpApp } from '../base/http-app.ts';
import { invalidField } from '../contract/errors.ts';
import type { Daemon } from './daemon.ts';

/** Read at a time for one follower. */
const PAGE_RECORDS = 200;
/** So that a follower that is gone is noticed, and one behind a proxy is kept. */
const HEARTBEAT_MS = 15_000;

/** `GET /events/stream`: every record as it is committed. Source: contract section 4. */
export function registerEventStream(app: HttpApp, daemon: Daemon): void {
  app.get('/api/v1/events/stream', async (request, reply) => {
    const { store } = daemon;
    const from = lastEventId(request.headers['last-event-id']) ?? (await store.lastSequence());
    reply.hijack();
    reply.raw.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-request-id': request.id,
    });
    reply.raw.flushHeaders();
    await follow(daemon, from, reply.raw).catch(() => reply.raw.destroy());
  });
}

/** Reads what is kept after `sequence`, then waits for more; a slow reader holds up nobody. */
async function follow(daemon: Daemon, sequence: number, response: ServerResponse): Promise<void> {
  let last = sequence;
  while (!response.destroyed) {
    const arrived = daemon.store.nextCommit();
    const records = await daemon.store.after(last, PAGE_RECORDS);
    for (const record of records) {
      last = record.sequence;
      const text = `id: ${record.sequence}\nevent: ${record.event_type}\ndata: ${record.body.split(/\r\n|\r|\n/).join('\ndata: ')}\n\n`;
      if (!response.write(text)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
      if (response.destroyed) return;
    }
    if (records.length === PAGE_RECORDS) continue;
    await quiet(daemon, arrived, response);
  }
}

/** Until something was committed or the follower is gone; a comment now and then shows that we are here. */
async function quiet(daemon: Daemon, arrived: Promise<void>, response: ServerResponse): Promise<void> {
  const heartbeat = Promise.withResolvers<boolean>();
  const timer = daemon.clock.after(HEARTBEAT_MS, () => heartbeat.resolve(true));
  const closed = once(response, 'close').catch(() => {});
  const is_heartbeat = await Promise.race([heartbeat.promise, arrived, closed]);
  timer.cancel();
  if (is_heartbeat === true && !response.destroyed) response.write(': \n\n');
}

function lastEventId(value: string | string[] | undefined): number | null {
  if (value === undefined) return null;
  if (typeof value !== 'string' || !/^\d{1,15}$/.test(value)) {
    throw invalidField('Last-Event-ID', 'must be a sequence');
  }
  return Number(value);
}
