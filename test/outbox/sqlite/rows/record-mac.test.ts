import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { isAuthentic, recordKey, recordMac } from '../../../../src/outbox/sqlite/rows/record-mac.ts';
import { checksumOf } from '../../../../src/outbox/sqlite/rows/rows.ts';
import { requestDaemon } from '../../../../src/runtime/control-client.ts';
import { startConsumer } from '../../../support/consumer.ts';
import { eventually } from '../../../support/eventually.ts';
import { draft, openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { launch, type SandboxdProgram } from '../../../support/sandboxd-program.ts';
import { scratchFolder } from '../../../support/scratch.ts';

vi.setConfig({ testTimeout: 60_000 });

const KEY = 'ab'.repeat(32);
const key = recordKey(KEY) as Buffer;

const record = fc.record({
  event_id: fc.string(),
  event_type: fc.string(),
  sandbox_id: fc.string(),
  sequence: fc.nat(),
  headers: fc.string(),
  body: fc.string(),
  created_at_ms: fc.nat(),
});

describe('the authentication of a record', () => {
  it('holds for exactly the record that it was made for, under exactly its key', () => {
    fc.assert(
      fc.property(record, record, fc.uint8Array({ minLength: 32, maxLength: 32 }), (one, other, bytes) => {
        const mac = recordMac(key, one);
        expect(isAuthentic(key, { ...one, mac })).toBe(true);
        expect(isAuthentic(Buffer.from(bytes), { ...one, mac })).toBe(false);
        for (const [name, value] of Object.entries(other)) {
          const changed = { ...one, mac, [name]: value };
          expect(isAuthentic(key, changed)).toBe(one[name as keyof typeof one] === value);
        }
      }),
    );
  });

  it('tells apart records whose texts are the same where they are put together', () => {
    const base = { event_id: 'a', event_type: 'b', sandbox_id: 'c', sequence: 1, created_at_ms: 2 };
    const macs = [
      recordMac(key, { ...base, headers: 'xy', body: 'z' }),
      recordMac(key, { ...base, headers: 'x', body: 'yz' }),
      recordMac(key, { ...base, event_id: 'ab', event_type: '', headers: 'xy', body: 'z' }),
      recordMac(key, { ...base, sequence: 12, created_at_ms: 2, headers: 'xy', body: 'z' }),
    ];
    expect(new Set(macs.map((mac) => mac.toString('hex'))).size).toBe(macs.length);
  });

  it('refuses whatever a row of a hostile file can hold, without an error', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.anything()), fc.anything(), (row, mac) => {
        expect(isAuthentic(key, { ...row, mac } as never)).toBe(false);
      }),
    );
  });

  it('takes 64 lower-case hex digits for a key, and nothing else', () => {
    expect(recordKey(KEY)).toHaveLength(32);
    for (const text of ['', 'ab', KEY.toUpperCase(), `${KEY}0`, `${KEY}\n`, 'g'.repeat(64)]) {
      expect(recordKey(text)).toBeNull();
    }
  });
});

describe('records read back from the disk', () => {
  it('are not sent where somebody else wrote or changed them; the others are', () => {
    const { rows, db } = openRows(new ManualClock(), { record_key: KEY });
    rows.begin();
    for (const payload of ['{"n":1}', '{"n":2}', '{"n":3}', '{"n":4}'])
      rows.added.append({ drafts: [draft(payload)] });
    rows.commit();
    const forge = (id: number, column: string, value: unknown) =>
      db.prepare(`UPDATE records SET ${column} = ? WHERE id = ?`).run(value, id);
    const body = '{"event_type":"sandbox.deleted","sandbox_id":"of somebody else"}';
    const headers = db.prepare('SELECT headers FROM records WHERE id = 1').pluck().get() as string;
    forge(1, 'body', body);
    forge(1, 'checksum', checksumOf(headers, body));
    forge(2, 'sandbox_id', 'sb-2');
    forge(3, 'mac', null);
    expect(rows.backlog.untried(0, 10).records.map(({ id }) => id)).toEqual([4]);
    rows.begin();
    expect(rows.backlog.failUnsendable()).toEqual({ damaged: 0, forged: 3 });
    rows.commit();
    expect(rows.counts()).toMatchObject({ pending: 1, failed: 3 });
  });

  it('are sent without a record key as before, but never where a column is none that a daemon writes', () => {
    const { rows, db } = openRows(new ManualClock());
    rows.begin();
    for (const payload of ['{"n":1}', '{"n":2}', '{"n":3}']) rows.added.append({ drafts: [draft(payload)] });
    rows.commit();
    db.prepare('UPDATE records SET headers = ?, checksum = ? WHERE id = 1').run('not JSON', 0);
    const { body } = db.prepare('SELECT body FROM records WHERE id = 1').get() as { body: string };
    db.prepare('UPDATE records SET checksum = ? WHERE id = 1').run(checksumOf('not JSON', body));
    db.prepare('UPDATE records SET body = 12 WHERE id = 2').run();
    expect(rows.backlog.untried(0, 10).records.map(({ id }) => id)).toEqual([3]);
    rows.begin();
    expect(rows.backlog.failUnsendable()).toEqual({ damaged: 2, forged: 0 });
    rows.commit();
  });
});

describe('a record key given at the init', () => {
  const init = (webhook_url: string, record_key: string) => ({
    sandbox_id: 'sbx_1',
    team_id: 'team_1',
    webhook: { url: webhook_url },
    record_key,
  });

  async function awaiting(socket: string, state_dir?: string): Promise<SandboxdProgram> {
    const args = ['--await-init', '--control-socket', socket];
    const daemon = launch(args, state_dir === undefined ? {} : { state_dir });
    await daemon.logged('listening');
    return daemon;
  }

  const initialise = (socket: string, url: string, record_key: string) =>
    requestDaemon(socket, {
      method: 'POST',
      path: '/sandbox/init',
      body: init(url, record_key),
      within_ms: 20_000,
    });

  it('is taken over the control socket alone, and only where it is one', async () => {
    const consumer = await startConsumer();
    const socket = join(scratchFolder(), 'control.sock');
    const daemon = await awaiting(socket);
    const refused = await daemon.call('POST', '/api/v1/sandbox/init', init(consumer.url, KEY));
    expect(refused.status).toBe(400);
    const bad = await initialise(socket, consumer.url, 'no key');
    expect(bad).toMatchObject({ status: 400 });
    expect(JSON.stringify(bad)).toContain('record_key');
    expect(JSON.stringify(bad)).not.toContain('no key');
  });

  it('keeps what was forged in the outbox from being sent, and is nowhere to be read', async () => {
    const consumer = await startConsumer();
    consumer.answer = (_, response) => response.writeHead(503).end();
    const socket = join(scratchFolder(), 'control.sock');
    const first = await awaiting(socket);
    const { state_dir } = first;
    expect(await initialise(socket, consumer.url, KEY)).toMatchObject({ status: 200 });
    await first.publish('{"n":1}');
    await first.publish('{"n":2}');
    await first.end('SIGKILL');
    forgePayload(state_dir, '"n":1', '"n":9');
    consumer.deliveries.length = 0;
    consumer.answer = (_, response) => response.writeHead(204).end();
    const second = await awaiting(socket, state_dir);
    expect(await initialise(socket, consumer.url, KEY)).toMatchObject({ status: 200 });
    await eventually(
      async () => {
        const view = await requestDaemon(socket, { method: 'GET', path: '/sandbox', within_ms: 5_000 });
        expect(view).toMatchObject({ data: { outbox: { pending: 0, failed: 1 } } });
      },
      { timeout: 60_000 },
    );
    expect(consumer.of('agent.event').map(({ event }) => event.payload)).toEqual([{ n: 2 }]);
    const metrics = await (await fetch(`${second.url}/metrics`)).text();
    expect(metrics).toMatch(/^sandboxd_records_not_authentic_total 1$/m);
    await second.logged('records are not authentic: they will not be sent');
    await second.end('SIGTERM');
    expect(first.stderr + second.stderr).not.toContain(KEY);
    for (const file of ['outbox.db', 'environment.json', 'high-water']) {
      const path = join(state_dir, file);
      if (existsSync(path)) expect(readFileSync(path).includes(KEY)).toBe(false);
    }
  });
});

/** Changes the body of a stored record as somebody who knows the format would. */
function forgePayload(state_dir: string, from: string, to: string): void {
  const db = new Database(join(state_dir, 'outbox.db'));
  const found = db.prepare("SELECT id, headers, body FROM records WHERE body LIKE '%' || ? || '%'").get(from);
  const { id, headers, body } = found as { id: number; headers: string; body: string };
  const forged = body.replace(from, to);
  const change = db.prepare('UPDATE records SET body = ?, checksum = ? WHERE id = ?');
  change.run(forged, checksumOf(headers, forged), id);
  db.close();
}
