import { systemClock } from '../../../src/base/clock.ts';
import { readUndelivered } from '../../../src/outbox/sqlite/undelivered/undelivered-reader.ts';
import { verify } from '../../../src/webhook/signature.ts';
import { SECRET } from './daemon.ts';
import { serve } from './program.ts';

export interface HandedOverEvent {
  event_id: string;
  /** The payload's number; null for the daemon's own events. */
  n: number | null;
  is_whole: boolean;
}

export type HandOverVerbs = { read: (state_dir: string) => HandedOverEvent[] };

/** A daemon that nobody manages has no record key: its webhook's signature decides. */
const TRUST = {
  sandbox_id: 'sbx_bench',
  team_id: 'team_bench',
  webhook_secret: SECRET,
  record_key: null,
};

/** Reads a stopped outbox as a deletion does. */
function read(state_dir: string): HandedOverEvent[] {
  const events: HandedOverEvent[] = [];
  for (const { records } of readUndelivered({ ...TRUST, state_dir }, systemClock)) {
    for (const { event_id, body, headers } of records) {
      const n = /"payload":\{"n":"(\d+)"/.exec(body)?.[1];
      const is_whole = verify(SECRET, Buffer.from(body), headers['X-Service-Signature'] ?? '');
      events.push({ event_id, n: n === undefined ? null : Number(n), is_whole });
    }
  }
  return events;
}

serve<HandOverVerbs>({ read });
