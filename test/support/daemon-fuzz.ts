import { join } from 'node:path';
import Database from 'better-sqlite3';
import { type RawRequest, rawRequests } from './raw-requests.ts';
import { answersOf, exchange, type RawAnswer } from './raw-socket.ts';

/** What a daemon made of the requests; everything but the first three and `statuses` is a defect. */
export interface FuzzReport {
  requests: number;
  answers: number;
  publishes: number;
  /** How often each status was answered. */
  statuses: Record<string, number>;
  /** Plain publishes that were not taken. */
  lost: number[];
  /** Publishes that were taken although they had to be refused. */
  forged: string[];
  /** Answers without the envelope of the contract. */
  odd_answers: string[];
}

const PUBLISH = '/api/v1/webhook/publish';
const PATHS = [
  ...[PUBLISH, PUBLISH, PUBLISH, '/api/v1/processes', '/api/v1/processes/p', '/api/v1/processes/p/stdin'],
  ...['/api/v1/processes/p/output', '/api/v1/processes/p/attach', '/api/v1/sandbox', '/api/v1/sandbox/init'],
  ...[
    '/api/v1/sandbox/pause',
    '/api/v1/sandbox/stop',
    '/api/v1/sandbox/hold',
    '/api/v1/sandbox/env',
    '/healthz',
  ],
  ...['/readyz', '/metrics', '/api/v1/webhook/deliveries', '/api/v1/events/stream', '/api/v1/nowhere'],
];
const START = '{"shell":"exec sleep 1000"}';
const HIDDEN = ['/api/v1/processes', '/api/v1/sandbox/stop', '/api/v1/sandbox/pause'].map(
  (path) =>
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nX-Control-Scope: manage\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${START.length}\r\n\r\n${START}`,
);

/** Connections at a time: well below the daemon's bound, which would close others'. */
const CONNECTIONS = 48;
/** A plain request is waited for; others end when nothing more comes. */
const QUIET_MS = 4;
const ODD_WITHIN_MS = 250;

interface Options {
  port: number;
  seed: number;
  count: number;
  /** An authorization that is not the daemon's, or null. */
  wrong_token: string | null;
}

/** A fuzz that was sent, to be judged once the daemon has ended. */
export interface Fuzz {
  report: FuzzReport;
  sent: RawRequest[];
  seed: number;
}

/** Sends that many raw requests to a daemon's TCP port. */
export async function fuzzDaemon(options: Options): Promise<Fuzz> {
  const { port, seed, count, wrong_token } = options;
  const requests = rawRequests(seed, {
    host: `localhost:${port}`,
    paths: PATHS,
    headers: wrong_token === null ? [] : [`Authorization: Bearer ${wrong_token}`],
    hidden: HIDDEN,
    body: (n) => JSON.stringify({ payload: { seed, n } }),
  });
  const report: FuzzReport = {
    ...{ requests: 0, answers: 0, publishes: 0 },
    ...{ statuses: {}, lost: [], forged: [], odd_answers: [] },
  };
  const sent: RawRequest[] = [];
  const worker = async () => {
    while (sent.length < count) {
      const { value } = requests.next();
      sent.push(value);
      const limits = value.is_plain
        ? { quiet_ms: QUIET_MS }
        : { quiet_ms: QUIET_MS, within_ms: ODD_WITHIN_MS };
      note(report, value, await exchange({ host: '127.0.0.1', port }, value.bytes, limits));
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  return { report, sent, seed };
}

function note(report: FuzzReport, { tricks }: RawRequest, text: string): void {
  report.requests += 1;
  for (const answer of answersOf(text)) {
    report.answers += 1;
    report.statuses[answer.status] = (report.statuses[answer.status] ?? 0) + 1;
    if (isOdd(answer)) report.odd_answers.push(`${tricks.join(', ')}: ${answer.head}\n${answer.body}`);
  }
}

/** Whether an answer is not as the contract says: each error has the envelope. */
function isOdd({ status, head, body }: RawAnswer): boolean {
  if (status >= 100 && status < 400) return false;
  // The answer to HEAD has no body.
  if (body === '' && /content-length: [1-9]/i.test(head)) return false;
  return !/^\{"success":false,"error":\{"code":"[a-z_]+","message":"/.test(body);
}

/** The numbers of the publishes in the outbox, with how often each is there. */
function publishedOf(state_dir: string, seed: number): Map<number, number> {
  const db = new Database(join(state_dir, 'outbox.db'), { readonly: true });
  const bodies = db
    .prepare(`SELECT body FROM records WHERE event_type = 'agent.event'`)
    .pluck()
    .all() as Buffer[];
  db.close();
  const published = new Map<number, number>();
  for (const body of bodies) {
    const { payload } = JSON.parse(body.toString());
    if (payload.seed === seed) published.set(payload.n, (published.get(payload.n) ?? 0) + 1);
  }
  return published;
}

/** What became of the requests, as the outbox of a daemon that has ended shows. */
export function judged({ report, sent, seed }: Fuzz, state_dir: string): FuzzReport {
  const published = publishedOf(state_dir, seed);
  for (const count of published.values()) report.publishes += count;
  for (const { n, is_plain, is_refused, tricks, bytes } of sent) {
    const times = published.get(n) ?? 0;
    const must = is_plain && bytes.toString('latin1').startsWith(`POST ${PUBLISH} `);
    if (must && times !== 1) report.lost.push(n);
    if (is_refused && times > 0) report.forged.push(tricks.join(', '));
  }
  return report;
}
