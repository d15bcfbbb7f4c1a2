import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { nowMs } from '../../bench/support/numbers.ts';
import { serve } from '../../bench/support/program.ts';

/** Nothing that an honest client asks takes longer, however many hostile ones there are. */
const PATIENCE_MS = 60_000;
const PUBLISH = '/api/v1/webhook/publish';

export interface Honest {
  url: string;
  token: string;
  duration_ms: number;
  /** Publishes and health alone: all that a bare server has. */
  is_bare?: boolean;
}

/** An acknowledged publish; times are on the clock that all processes of a machine share. */
export interface HonestPublish {
  event_id: string;
  /** Checksum of the payload's text. */
  checksum: number;
  sent_ms: number;
  acknowledged_ms: number;
}

/** What one kind of honest request came to. */
export interface HonestAnswers {
  statuses: Record<string, number>;
  latencies_ms: number[];
}

export interface HonestReport {
  published: HonestPublish[];
  answers: Record<string, HonestAnswers>;
  defects: string[];
}

export type HonestVerbs = { run: (honest: Honest) => Promise<HonestReport> };

interface Kind {
  name: string;
  every_ms: number;
  method: string;
  path: string;
  body?: () => string;
  is_open?: boolean;
  /** Statuses that are fine; 503 needs a Retry-After. */
  wanted: number[];
}

const KINDS: Kind[] = [
  { name: 'health', every_ms: 50, method: 'GET', path: '/healthz', is_open: true, wanted: [200] },
  {
    ...{ name: 'publish', every_ms: 50, method: 'POST', path: PUBLISH, is_open: true, wanted: [202, 503] },
    body: () => `{"payload":${payload()}}`,
  },
];

const WITH_TOKEN: Kind[] = [
  {
    ...{ name: 'process', every_ms: 500, method: 'POST', path: '/api/v1/processes?wait_ms=30000' },
    ...{ body: () => '{"command":["true"]}', wanted: [201, 429, 503] },
  },
  {
    ...{ name: 'stat', every_ms: 500, method: 'GET', path: '/api/v1/files/stat?path=/etc/passwd' },
    wanted: [200, 429, 503],
  },
  { name: 'sandbox', every_ms: 500, method: 'GET', path: '/api/v1/sandbox', wanted: [200] },
  { name: 'readiness', every_ms: 500, method: 'GET', path: '/readyz', is_open: true, wanted: [200] },
];

let published = 0;
let last_payload = '';

function payload(): string {
  last_payload = `{"honest":${++published}}`;
  return last_payload;
}

/** Each kind of request by itself, one after the other. */
async function run(honest: Honest): Promise<HonestReport> {
  const report: HonestReport = { published: [], answers: {}, defects: [] };
  const end_ms = nowMs() + honest.duration_ms;
  const repeat = async (kind: Kind) => {
    const answers: HonestAnswers = { statuses: {}, latencies_ms: [] };
    report.answers[kind.name] = answers;
    for (let due_ms = nowMs(); nowMs() < end_ms; due_ms = Math.max(due_ms + kind.every_ms, nowMs())) {
      await sleep(Math.max(0, due_ms - nowMs()));
      await once(honest, kind, answers, report);
    }
  };
  const kinds = honest.is_bare ? KINDS : [...KINDS, ...WITH_TOKEN];
  await Promise.all(kinds.map(repeat));
  return report;
}

async function once(honest: Honest, kind: Kind, answers: HonestAnswers, report: HonestReport): Promise<void> {
  const sent_ms = nowMs();
  const body = kind.body?.();
  const checksum = crc32(last_payload);
  try {
    const answer = await ask(honest, kind, body);
    const acknowledged_ms = nowMs();
    const { status } = answer;
    answers.latencies_ms.push(acknowledged_ms - sent_ms);
    answers.statuses[status] = (answers.statuses[status] ?? 0) + 1;
    if (status === 202) {
      const { event_id } = JSON.parse(answer.text).data;
      report.published.push({ event_id, checksum, sent_ms, acknowledged_ms });
    }
    // A bare server has no health: that it answers is what counts.
    if (!honest.is_bare && (!kind.wanted.includes(status) || (status === 503 && !answer.retry_after)))
      report.defects.push(`${kind.name}: ${status} (Retry-After: ${answer.retry_after}) ${answer.text}`);
  } catch (error) {
    answers.latencies_ms.push(nowMs() - sent_ms);
    report.defects.push(
      `${kind.name}: ${(error as Error).message} after ${Math.round(nowMs() - sent_ms)} ms`,
    );
  }
}

interface Answer {
  status: number;
  retry_after: string | undefined;
  text: string;
}

function ask({ url, token }: Honest, { method, path, is_open }: Kind, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...(is_open ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const request = http.request(`${url}${path}`, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        clearTimeout(late);
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode ?? 0, retry_after: response.headers['retry-after'], text });
      });
    });
    const late = setTimeout(() => request.destroy(new Error('no answer')), PATIENCE_MS);
    request.on('error', (error) => {
      clearTimeout(late);
      reject(error);
    });
    request.end(body);
  });
}

serve<HonestVerbs>({ run });
