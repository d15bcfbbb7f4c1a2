import { randomUUID } from 'node:crypto';
import { Agent, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Database from 'better-sqlite3';
import { systemClock } from '../../../src/base/clock.ts';
import { createHttpApp, type HttpApp, success } from '../../../src/base/http/app.ts';
import { Connections, createListener } from '../../../src/base/http/listener.ts';
import { createLog } from '../../../src/base/log.ts';
import { Guard } from '../../../src/daemon/api/guard.ts';
import { payloadText } from '../../../src/daemon/api/publish/payload.ts';
import { ControlToken } from '../../../src/daemon/control-token.ts';
import { newEventIds, signedEvent } from '../../../src/webhook/signed-event.ts';
import { serve } from './program.ts';

/**
 * Nothing is kept; each event is made and signed, and then forgotten; each is a row and a commit of a database; each is
 * sent on at once, and forgotten.
 */
export type Keeping =
  | { how: 'nothing' }
  | { how: 'signed'; secret: string }
  | { how: 'row'; path: string }
  | { how: 'forwarded'; webhook_url: string };

export type BareServerVerbs = { listen: (keeping: Keeping) => Promise<{ url: string }> };

type Keep = (payload: string) => { event_id: string; sequence: number };

/** The daemon's own way of taking a publish, up to where the outbox begins. */
async function listen(keeping: Keeping): Promise<{ url: string }> {
  const app = createHttpApp(createLog('silent'));
  const guard = new Guard({
    host: 'localhost',
    port: () => 0,
    token: new ControlToken('', '', systemClock),
    is_control: () => false,
  });
  app.addHook('onRequest', (request, _reply, done) => {
    guard.check(request);
    done();
  });
  registerPublish(app, keepOf(keeping));
  app.get('/healthz', { config: { access: 'health' } }, async () => success({ alive: true }));
  await app.ready();
  return { url: await listening(createListener(app, new Connections())) };
}

function registerPublish(app: HttpApp, keep: Keep): void {
  app.post(
    '/api/v1/webhook/publish',
    { config: { is_raw: true, access: 'open' } },
    async (request, reply) => {
      const receipt = keep(payloadText(request.body as Buffer));
      reply.code(202);
      return success(receipt);
    },
  );
}

function keepOf(keeping: Keeping): Keep {
  if (keeping.how === 'row') return rowPerCommit(keeping.path);
  if (keeping.how === 'forwarded') return forwarded(keeping.webhook_url);
  return keeping.how === 'signed' ? signed(keeping.secret) : withoutStorage();
}

/** All that the daemon does to an event before it stores it. */
function signed(secret: string): Keep {
  const identity = { event_type: 'agent.event', sandbox_id: 'sbx_bench', team_id: 'team_bench' };
  let sequence = 0;
  return (payload) => {
    const happened_at_ms = Date.now();
    const [event_id = ''] = newEventIds(1, happened_at_ms);
    sequence += 1;
    signedEvent({ ...identity, event_id, happened_at_ms, sequence, payload }, 'sandboxd', secret);
    return { event_id, sequence };
  };
}

function withoutStorage(): Keep {
  let sequence = 0;
  const event_id = `evt_${randomUUID()}`;
  return () => ({ event_id, sequence: ++sequence });
}

/** As many attempts at a time as the daemon makes. */
function forwarded(webhook_url: string): Keep {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  let sequence = 0;
  return (payload) => {
    const event_id = `evt_${randomUUID()}`;
    const headers = { 'content-type': 'application/json', 'ce-id': event_id };
    const attempt = httpRequest(webhook_url, { method: 'POST', agent, headers });
    attempt.on('response', (response) => response.resume());
    attempt.on('error', () => {});
    attempt.end(`{"payload":${payload}}`);
    return { event_id, sequence: ++sequence };
  };
}

function rowPerCommit(path: string): Keep {
  const db = new Database(path);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec(
    'CREATE TABLE events (sequence INTEGER PRIMARY KEY, event_id TEXT NOT NULL, payload TEXT NOT NULL)',
  );
  const insert = db.prepare('INSERT INTO events (event_id, payload) VALUES (?, ?)');
  return (payload) => {
    const event_id = `evt_${randomUUID()}`;
    return { event_id, sequence: Number(insert.run(event_id, payload).lastInsertRowid) };
  };
}

function listening(server: Server): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    });
  });
}

serve<BareServerVerbs>({ listen });
