import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LocalRecord } from '../../../src/runtime/local/sandbox-files.ts';
import { type Consumer, startConsumer } from '../consumer.ts';
import type { Sandboxes } from './sandboxes.ts';

/** A consumer that answers 503. */
export async function refusing(): Promise<Consumer> {
  const consumer = await startConsumer();
  consumer.answer = (_, response) => response.writeHead(503).end();
  return consumer;
}

/** The record in `sandbox.json`. */
export function recordOf(sandboxes: Sandboxes, sandbox_id: string): LocalRecord {
  return JSON.parse(readFileSync(join(sandboxes.data_dir, sandbox_id, 'sandbox.json'), 'utf8'));
}

/** Publishes to `sbx-1`, a hundred at a time: a daemon has a limited number of connections. */
export async function publish(sandboxes: Sandboxes, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) {
    const publishes = Array.from({ length: Math.min(100, count - ids.length) }, (_, n) =>
      sandboxes.ask('sbx-1', 'POST', '/webhook/publish', { payload: { n } }),
    );
    ids.push(...(await Promise.all(publishes)).map(({ event_id }) => event_id));
  }
  return ids;
}
