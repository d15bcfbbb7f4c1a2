import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Database from 'better-sqlite3';
import { systemClock } from '../../../src/base/clock.ts';
import { createHttpApp, type HttpApp, success } from '../../../src/base/http/app.ts';
import { Connections, createListener } from '../../../src/base/http/listener.ts';
import { createLog } from '../../../src/base/log.ts';
import { Guard } from '../../../src/daemon/api/guard.ts';
import { payloadText } from '../../../src/daemon/api/publish/payload.ts';
import { ControlToken } from '../../../src/daemon/control-token.ts';
import { serve } from './program.ts';

export type BareServerVerbs = {
  /** With a file, each publish is one row and one commit of that database; without, nothing is kept. */
  listen: (input: { database: string | null }) => Promise<{ url: string }>;
};

type Keep = (payload: string) => { event_id: string; sequence: number };

/** The daemon's own way of taking a publish, up to where the outbox begins. */
async function listen(database: string | null): Promise<{ url: string }> {
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
  registerPublish(app, database === null ? withoutStorage() : rowPerCommit(database));
  await app.ready();
  return { url: await listening(createListener(app, new Connections())) };
}

function registerPublish(app: HttpApp, keep: Keep): void {
  app.post('/api/v1/webhook/publish', { config: { is_raw: true } }, async (request, reply) => {
    const receipt = keep(payloadText(request.body as Buffer));
    reply.code(202);
    return success(receipt);
  });
}

function withoutStorage(): Keep {
  let sequence = 0;
  const event_id = `evt_${randomUUID()}`;
  return () => ({ event_id, sequence: ++sequence });
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

serve<BareServerVerbs>({ listen: ({ database }) => listen(database) });
