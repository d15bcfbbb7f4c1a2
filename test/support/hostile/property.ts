import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { eventually } from '../eventually.ts';
import { startSandboxd } from '../sandboxd-program.ts';
import { scratchFolder } from '../scratch.ts';
import { attack, lostOf, parties } from './attack.ts';
import { residentBytes } from './samples.ts';

const SECRET = 'hostile clients do not know it';
const MB = 1e6;
/** The daemon's own process, whatever its clients do. */
const RESIDENT_MAX_BYTES = 200 * MB;
/** `--outbox-max-bytes`, and the reserve of lifecycle and process events. */
const OUTBOX_MAX_BYTES = 300 * 2 ** 20;
const OPEN_FILES_MAX = 2_000;
const DRAINED_WITHIN_MS = 300_000;

interface Settings {
  clients: number;
  duration_ms: number;
  seed: number;
  /** Share of deliveries that the receiver treats badly meanwhile. */
  badly: number;
  only?: string;
}

/**
 * Hostile clients, each doing only what is allowed, beside honest ones: asserts bounds of memory and queues, that every
 * answer is one, and that what was acknowledged is delivered. Durations are a benchmark's.
 */
export async function expectToHold({
  clients,
  duration_ms,
  seed,
  badly,
  only = '',
}: Settings): Promise<void> {
  const programs = await parties();
  onTestFinished(async () => {
    for (const program of Object.values(programs)) await program.stop();
  });
  const folder = join(scratchFolder(), 'work');
  mkdirSync(folder);
  const { url: webhook_url } = await programs.receiver.ask('listen', { secret: SECRET, seed, badly });
  const daemon = await startSandboxd(
    ['--webhook-url', webhook_url, '--watch-dir', folder, '--shutdown-grace-ms', '2000'],
    { env: { SANDBOXD_WEBHOOK_SECRET: SECRET } },
  );
  const target = { pid: daemon.pid, url: daemon.url, token: daemon.token };
  const outcome = await attack(programs, target, { clients, duration_ms, seed, folder, only });
  const { attacked, honest, highest, gauges } = outcome;
  await programs.receiver.ask('heal', null);
  const counts = async () => (await daemon.call('GET', '/api/v1/sandbox')).data.outbox;
  const undelivered = await eventually(
    async () => {
      const outbox = await counts();
      expect(outbox).toMatchObject({ pending: 0 });
      return outbox;
    },
    { timeout: DRAINED_WITHIN_MS, interval: 200 },
  );
  const received = await programs.receiver.ask('received', null);
  const mb = (bytes: number) => `${Math.round(bytes / MB)} MB`;
  console.log(
    `seed ${seed}: ${Object.values(attacked.runs).reduce((sum, runs) => sum + runs, 0)} runs, ` +
      `${attacked.acknowledged.length} hostile and ${honest.published.length} honest events acknowledged, ` +
      `${received.length} received; resident ${mb(highest.resident_bytes)} at most, ` +
      `${mb(residentBytes(daemon.pid))} afterwards, helpers ${mb(highest.helpers_bytes)}, ` +
      `${highest.threads} threads, ${highest.open_files} open files, ` +
      `outbox ${mb(gauges.sandboxd_outbox_bytes ?? 0)}; honest ${JSON.stringify(
        Object.fromEntries(Object.entries(honest.answers).map(([kind, { statuses }]) => [kind, statuses])),
      )}`,
  );
  console.log(JSON.stringify(attacked.answers, null, 1));
  expect.soft(honest.defects).toEqual([]);
  expect.soft(attacked.defects).toEqual([]);
  expect.soft(lostOf(outcome, received)).toEqual([]);
  expect.soft(undelivered).toMatchObject({ failed: 0, expired: 0 });
  expect.soft(highest.resident_bytes).toBeLessThanOrEqual(RESIDENT_MAX_BYTES);
  expect.soft(gauges.sandboxd_outbox_bytes).toBeLessThanOrEqual(OUTBOX_MAX_BYTES);
  expect.soft(highest.open_files).toBeLessThanOrEqual(OPEN_FILES_MAX);
  expect.soft(await daemon.end('SIGTERM')).toEqual({ code: 0, signal: null });
}
