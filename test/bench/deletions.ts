import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { verify } from '../../src/webhook/signature.ts';
import { startPostgres } from '../support/postgres.ts';
import { RedisServer } from '../support/redis.ts';

/**
 * Deletions against two replicas of the manager on PostgreSQL. First 100 with a consumer that hangs and as many with
 * one that answers: their cleanups must take as long. Then many whose consumer fails half the time: each must be
 * delivered, with one body, and none be sent by two replicas at once. Exit code 1 where something is not so.
 *
 *   node test/bench/deletions.ts [--deletions 1000] [--cleanups 100]
 */
const { values } = parseArgs({
  options: {
    deletions: { type: 'string', default: '1000' },
    cleanups: { type: 'string', default: '100' },
  },
});
const deletions = Number(values.deletions);
const cleanups = Number(values.cleanups);

const SECRET = 'a secret made for this run';
const PROGRAM = join(import.meta.dirname, '../../bin/sandbox-manager.ts');
const WORKERS = 8;
const DELIVERED_WITHIN_MS = 20 * 60_000;
const RATIO_MAX = 1.2;

interface Request {
  event_id: string;
  sandbox_id: string;
  status: number;
}

const folder = mkdtempSync(join(tmpdir(), 'sandbox-deletions-'));
const postgres = await startPostgres();
const database = await postgres.database();
const key = ['--secret-key-file', join(folder, 'key')];
const consumer = await startConsumer();
const redis = await RedisServer.start();
const replicas = [await startManager(), await startManager()];
const faults: string[] = [];
try {
  await warmUp();
  await compareCleanups();
  await failingConsumer();
} finally {
  for (const { program } of replicas) program.kill('SIGKILL');
  consumer.close();
  await redis.stop();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
for (const fault of faults) console.error(fault);
process.exit(faults.length > 0 ? 1 : 0);

async function startManager(): Promise<{ program: ChildProcess; url: string; token: string }> {
  const shared = ['--redis', redis.url, '--replicas', '2'];
  const options = ['--database', database, ...key, '--runtime', 'none', ...shared];
  const program = spawn(
    process.execPath,
    [PROGRAM, '--listen', '127.0.0.1:0', '--allow-webhook-cidr', '127.0.0.0/8', ...options],
    { stdio: ['ignore', 'ignore', 'pipe'], cwd: folder },
  );
  for await (const line of createInterface({ input: program.stderr as NodeJS.ReadableStream })) {
    const { msg, url } = JSON.parse(line);
    if (msg !== 'listening') continue;
    program.stderr?.resume();
    const token = execFileSync(
      process.execPath,
      [PROGRAM, 'token', 'create', '--database', database, '--team', 'team_1', '--scope', 'sandboxes:write'],
      { encoding: 'utf8', cwd: folder },
    ).trim();
    return { program, url, token };
  }
  throw new Error('the manager did not start');
}

/** Answers by path: `/hangs` never, `/answers` at once, `/half` as a coin falls. */
async function startConsumer() {
  const requests: Request[] = [];
  const open = new Map<string, number>();
  const bodies = new Map<string, string>();
  const server = createServer(async (request, response) => {
    const body = (await buffer(request).catch(() => Buffer.alloc(0))).toString('utf8');
    if (body === '' || request.url === '/hangs') return;
    const { event_id, sandbox_id } = JSON.parse(body);
    if (!verify(SECRET, body, request.headers['x-service-signature']))
      faults.push(`${event_id} is not signed`);
    if ((bodies.get(event_id) ?? body) !== body) faults.push(`${event_id} came with two bodies`);
    bodies.set(event_id, body);
    open.set(event_id, (open.get(event_id) ?? 0) + 1);
    if ((open.get(event_id) ?? 0) > 1) faults.push(`${event_id} was sent twice at once`);
    response.on('close', () => open.set(event_id, (open.get(event_id) ?? 1) - 1));
    await sleep(5);
    const fails = request.url === '/half' && Math.random() < 0.5;
    const status = fails ? 503 : 204;
    requests.push({ event_id, sandbox_id, status });
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    requests,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function call(method: string, path: string, body?: unknown): Promise<{ status: number; data: never }> {
  const { url, token } = replicas[Math.floor(Math.random() * replicas.length)] as (typeof replicas)[number];
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const { data } = (await response.json()) as { data: never };
  return { status: response.status, data };
}

async function claim(path: string): Promise<string> {
  const webhook = { url: consumer.url + path, secret: SECRET };
  const { status, data } = await call('POST', '/api/v1/sandboxes', { config: { webhook } });
  if (status !== 201) throw new Error(`a claim was answered ${status}`);
  return (data as { sandbox_id: string }).sandbox_id;
}

/** Does `work` for each, several at a time; returns how long all of it took. */
async function each<Item>(items: Item[], work: (item: Item) => Promise<void>): Promise<number> {
  const began_ms = performance.now();
  const left = [...items];
  const worker = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  return performance.now() - began_ms;
}

async function claimed(count: number, path: string): Promise<string[]> {
  const sandbox_ids: string[] = [];
  await each(Array(count).fill(path), async (each_path) => {
    sandbox_ids.push(await claim(each_path));
  });
  return sandbox_ids;
}

/** Until a deleted sandbox is gone. */
async function deleteAndClean(sandbox_id: string): Promise<void> {
  await call('DELETE', `/api/v1/sandboxes/${sandbox_id}`);
  const status = async () =>
    ((await call('GET', `/api/v1/sandboxes/${sandbox_id}?include_deleted=true`)).data as { status: string })
      .status;
  while ((await status()) !== 'deleted') await sleep(2);
}

async function warmUp(): Promise<void> {
  await each(await claimed(20, '/answers'), deleteAndClean);
}

async function compareCleanups(): Promise<void> {
  const durations: Record<string, number[]> = { '/answers': [], '/hangs': [] };
  for (let turn = 0; turn < 3; turn++) {
    for (const path of ['/answers', '/hangs']) {
      const sandbox_ids = await claimed(cleanups, path);
      durations[path]?.push(await each(sandbox_ids, deleteAndClean));
    }
  }
  const [answers_ms, hangs_ms] = ['/answers', '/hangs'].map((path) => Math.min(...(durations[path] ?? [])));
  const ratio = (hangs_ms ?? 0) / (answers_ms ?? 1);
  const rounded = [hangs_ms, answers_ms].map((ms) => `${Math.round(ms ?? 0)} ms`);
  console.log(
    `${cleanups} cleanups: ${rounded[0]} with a hanging consumer, ${rounded[1]} with one that answers; ratio ${ratio.toFixed(2)}`,
  );
  if (ratio > RATIO_MAX) faults.push(`the ratio is above ${RATIO_MAX}`);
}

async function failingConsumer(): Promise<void> {
  const sandbox_ids = await claimed(deletions, '/half');
  const took_ms = await each(sandbox_ids, async (sandbox_id) => {
    await call('DELETE', `/api/v1/sandboxes/${sandbox_id}`);
  });
  console.log(`${deletions} deletions in ${Math.round(took_ms)} ms`);
  const began_ms = performance.now();
  const delivered = () =>
    new Set(consumer.requests.filter(({ status }) => status === 204).map(({ sandbox_id }) => sandbox_id));
  const missing = () => sandbox_ids.filter((sandbox_id) => !delivered().has(sandbox_id));
  while (missing().length > 0 && performance.now() - began_ms < DELIVERED_WITHIN_MS) await sleep(200);
  const wanted = new Set(sandbox_ids);
  const ours = consumer.requests.filter(({ sandbox_id }) => wanted.has(sandbox_id));
  const taken = ours.filter(({ status }) => status === 204);
  console.log(
    `${wanted.size - missing().length} of ${deletions} delivered after ${Math.round(performance.now() - began_ms)} ms, ` +
      `${ours.length} requests, ${ours.length - taken.length} of them refused, ${taken.length - wanted.size} duplicates`,
  );
  if (missing().length > 0) faults.push(`${missing().length} deletions were not delivered`);
  if (new Set(ours.map(({ event_id }) => event_id)).size !== deletions)
    faults.push('a deletion has two event ids');
}
