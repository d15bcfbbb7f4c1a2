import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { type Consumer, startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { type SandboxdProgram, startSandboxd } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

vi.setConfig({ testTimeout: 90_000 });

const FILES = 60;

/** Starts a daemon with a small outbox and a consumer that is down. */
async function start(
  max_records: number,
): Promise<{ daemon: SandboxdProgram; consumer: Consumer; work: string }> {
  const consumer = await startConsumer();
  consumer.answer = (_, response) => response.writeHead(503).end();
  const work = join(scratchFolder(), 'work');
  mkdirSync(work);
  const daemon = await startSandboxd([
    ...['--webhook-url', consumer.url, '--watch-dir', work, '--outbox-max-records', String(max_records)],
  ]);
  return { daemon, consumer, work };
}

function change(work: string): void {
  for (let n = 0; n < FILES; n++) writeFileSync(join(work, `file-${n}`), 'text');
}

async function queuedAll(daemon: SandboxdProgram): Promise<void> {
  await eventually(async () => {
    const { watcher } = (await daemon.call('GET', '/api/v1/sandbox')).data;
    expect(watcher.queued).toBeGreaterThan(0);
  }, 120_000);
}

describe('file events while the consumer is down', () => {
  it('leave half of the outbox to publishers', async () => {
    const { daemon, work } = await start(40);
    for (let n = 0; n < 30; n++) {
      writeFileSync(join(work, `file-${n}`), 'text');
      await eventually(async () => {
        const { watcher, outbox } = (await daemon.call('GET', '/api/v1/sandbox')).data;
        expect(watcher.queued > 0 || outbox.pending > 2 * n).toBe(true);
      }, 120_000);
    }
    await queuedAll(daemon);
    for (let n = 0; n < 15; n++) expect(await daemon.publish(`{"n":${n}}`)).toMatch(/^evt_/);
  });

  it('that do not fit into the outbox are stored in parts, as it gets room', async () => {
    const { daemon, consumer, work } = await start(50);
    change(work);
    await queuedAll(daemon);
    consumer.answer = (_, response) => response.writeHead(204).end();
    const created = () => {
      const payloads = consumer.of('file.modified').map(({ event }) => event.payload);
      return new Set(payloads.filter((p) => p.event_type === 'create').map(({ path }) => path)).size;
    };
    await eventually(() => expect(created()).toBe(FILES), { timeout: 60_000, interval: 100 });
    await eventually(async () => {
      const { watcher } = (await daemon.call('GET', '/api/v1/sandbox')).data;
      expect(watcher.queued).toBe(0);
    }, 120_000);
  });
});
