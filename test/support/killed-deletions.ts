import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../src/manager/database/database.ts';
import { verify } from '../../src/webhook/signature.ts';
import { firstToken, ManagerProgram } from './manager-program.ts';

const SECRET = 'a-key-for-this-run';
const CALLERS = 8;
const DRAIN_MS = 60_000;

export interface KilledRun {
  deletions: number;
  kills_max: number;
  /** The longest that a manager lives after it is ready. */
  life_ms: number;
}

/** What a run of deletions came to; each list holds sandbox ids and is empty where all is well. */
export interface KilledDeletions {
  kills: number;
  deleted: number;
  attempts: number;
  /** Deleted without a record of `sandbox.deleted`, or the other way round, at any look after a kill. */
  torn: string[];
  not_delivered: string[];
  /** Delivered with more than one event id or body, or with a wrong signature. */
  not_one: string[];
  /** Still there although their deletion was answered. */
  left: string[];
}

/**
 * Deletes sandboxes while the manager is killed at random points and started again; a consumer refuses every third
 * request. Looks after each kill whether the database holds exactly one notice per deleted sandbox.
 */
export async function deleteUnderKills(
  database: string,
  folder: string,
  wanted: KilledRun,
): Promise<KilledDeletions> {
  const consumer = await startReceiver();
  const running: { program: ManagerProgram | null } = { program: null };
  try {
    return await run(database, folder, consumer, running, wanted);
  } finally {
    running.program?.child.kill('SIGKILL');
    consumer.close();
  }
}

async function run(
  database: string,
  folder: string,
  consumer: Awaited<ReturnType<typeof startReceiver>>,
  running: { program: ManagerProgram | null },
  { deletions, kills_max, life_ms }: KilledRun,
): Promise<KilledDeletions> {
  const options = [
    ...['--database', database, '--runtime', 'none', '--listen', '127.0.0.1:0'],
    ...['--secret-key-file', join(folder, 'key'), '--allow-webhook-cidr', '127.0.0.0/8'],
  ];
  const token = await firstToken(database, 'sandboxes:write');
  const start = async () => {
    const program = await ManagerProgram.start(options);
    running.program = program;
    return program;
  };
  let program = await start();
  const call = (method: string, path: string, body?: object) =>
    fetch(`${program.url}/api/v1/sandboxes${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  const claim = { config: { webhook: { url: consumer.url, secret: SECRET } } };
  const ids: string[] = [];
  while (ids.length < deletions) {
    const answer = (await (await call('POST', '', claim)).json()) as { data: { sandbox_id: string } };
    ids.push(answer.data.sandbox_id);
  }

  const waiting = [...ids];
  const torn = new Set<string>();
  let kills = 0;
  const killer = (async () => {
    while (waiting.length > 0 && kills < kills_max) {
      await sleep(Math.random() * life_ms);
      await program.end('SIGKILL');
      kills += 1;
      for (const id of await tornIn(database)) torn.add(id);
      program = await start();
    }
  })();
  const callers = Array.from({ length: CALLERS }, async () => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) await deleteForSure(call, id);
  });
  await Promise.all([killer, ...callers]);

  const isDelivered = (id: string) => consumer.accepted.has(id);
  for (const end_ms = performance.now() + DRAIN_MS; performance.now() < end_ms; await sleep(50)) {
    if (ids.every(isDelivered)) break;
  }
  const left = await leftOf(call);
  await program.end('SIGTERM');
  for (const id of await tornIn(database)) torn.add(id);
  return {
    kills,
    deleted: ids.length,
    attempts: consumer.requests(),
    torn: [...torn],
    not_delivered: ids.filter((id) => !isDelivered(id)),
    not_one: [...consumer.not_one],
    left,
  };
}

type Call = (method: string, path: string) => Promise<Response>;

/** Asks until it is answered: a manager that is killed says nothing. */
async function deleteForSure(call: Call, id: string): Promise<void> {
  for (;;) {
    const answer = await call('DELETE', `/${id}`).catch(() => null);
    if (answer?.status === 202 || answer?.status === 404) return;
    await sleep(10);
  }
}

/** Sandboxes that are still there when their cleanups had time to end. */
async function leftOf(call: Call): Promise<string[]> {
  for (let looks = 0; ; looks++) {
    const { data } = (await (await call('GET', '?limit=200')).json()) as {
      data: { sandboxes: { id: string }[] };
    };
    if (data.sandboxes.length === 0 || looks === 100) return data.sandboxes.map(({ id }) => id);
    await sleep(200);
  }
}

/** Sandboxes whose record and notice do not tell the same. */
async function tornIn(url: string): Promise<string[]> {
  const { db, close } = await openDatabase(url);
  const sandboxes = await db.selectFrom('sandboxes').select(['sandbox_id', 'status']).execute();
  const notices = await db
    .selectFrom('outbox')
    .select('sandbox_id')
    .where('event_type', '=', 'sandbox.deleted')
    .execute();
  await close();
  const told = notices.map(({ sandbox_id }) => sandbox_id);
  const twice = told.filter((id, i) => told.indexOf(id) !== i);
  const differing = sandboxes
    .filter(({ sandbox_id, status }) => (status === 'terminating') !== told.includes(sandbox_id))
    .map(({ sandbox_id }) => sandbox_id);
  return [...twice, ...differing];
}

async function startReceiver() {
  const bodies = new Map<string, string>();
  const accepted = new Set<string>();
  const not_one = new Set<string>();
  let requests = 0;
  const server = createServer(async (request, response) => {
    const body = (await buffer(request).catch(() => Buffer.alloc(0))).toString('utf8');
    if (body === '') return;
    const { sandbox_id } = JSON.parse(body) as { sandbox_id: string };
    const is_signed = verify(SECRET, body, request.headers['x-service-signature']);
    if (!is_signed || (bodies.get(sandbox_id) ?? body) !== body) not_one.add(sandbox_id);
    bodies.set(sandbox_id, body);
    const refuses = ++requests % 3 === 0;
    if (!refuses) accepted.add(sandbox_id);
    response.writeHead(refuses ? 503 : 204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    accepted,
    not_one,
    requests: () => requests,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
