import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startConsumer } from '../support/consumer.ts';
import { startDaemon } from '../support/daemon/running-daemon.ts';
import { INTEROP, installed, missing, runProgram } from '../support/interop.ts';
import { scratchFolder } from '../support/scratch.ts';

const SECRET = 'whsec_a2V5IG1hZGUgZm9yIHRoaXMgdGVzdA==';
const title = missing('python');

describe.skipIf(title !== '')(`the Python libraries of CloudEvents and Standard Webhooks${title}`, () => {
  it('accept what a daemon sends, and see the same event in its headers and its body', async () => {
    const consumer = await startConsumer();
    const options = ['--webhook-url', consumer.url, '--webhook-secret', SECRET, '--sandbox-id', 'sbx'];
    const { publish, call } = await startDaemon(...options);
    await publish('{ "price": 1.10, "text": "Grüße \\u00e9 🌍" }');
    await call('POST', '/api/v1/processes', { body: '{"shell":"echo Grüße; exit 3"}' });
    await consumer.arrival('process.exited');
    await consumer.arrival('agent.event');
    const lines = consumer.deliveries.map(({ headers, body }) => JSON.stringify({ headers, body }));
    const file = join(scratchFolder(), 'deliveries');
    writeFileSync(file, `${lines.join('\n')}\n`);
    const script = `exec "$0" "$1" "$2" < "$3"`;
    const args = ['-c', script, installed('python'), join(INTEROP, 'consumers.py'), SECRET, file];
    const accepted = (await runProgram('sh', args))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(accepted).toEqual(
      consumer.deliveries.map(({ event, body }) => ({
        specversion: '1.0',
        id: event.event_id,
        source: '/sandboxes/sbx',
        type: event.event_type,
        time: JSON.parse(body).timestamp.replace('Z', '+00:00'),
        sequence: String(event.sequence),
        is_same: true,
      })),
    );
    expect(accepted.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['sandbox.ready', 'agent.event', 'process.started', 'process.exited']),
    );
  });
});
