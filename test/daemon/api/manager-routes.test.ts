import { spawn } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { LifecycleRecord } from '../../../src/contract/sandbox.ts';
import { isAuthentic, recordKey } from '../../../src/outbox/sqlite/rows/record-mac.ts';
import { type Hold, hold, requestDaemon } from '../../../src/runtime/control-client.ts';
import { startConsumer } from '../../support/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import { launch, type SandboxdProgram, startSandboxd } from '../../support/sandboxd-program.ts';
import { scratchFolder } from '../../support/scratch.ts';

const SECRET = 'a key made for this test';

async function start(...args: string[]): Promise<{ daemon: SandboxdProgram; socket: string }> {
  const socket = join(scratchFolder(), 'control.sock');
  const daemon = await startSandboxd(['--control-socket', socket, '--sandbox-id', 'sbx_1', ...args]);
  return { daemon, socket };
}

function post(socket: string, path: string, body?: object) {
  return requestDaemon(socket, { method: 'POST', path, within_ms: 20_000, ...(body ? { body } : {}) });
}

async function heldStill(socket: string): Promise<Hold> {
  const held = await hold(socket, 20_000);
  if ('outcome' in held) throw new Error(JSON.stringify(held));
  return held;
}

/** A process that counts as long as it runs; tells how far it is. */
async function counting(socket: string): Promise<() => number> {
  const file = join(scratchFolder(), 'count');
  const shell = `i=0; while :; do i=$((i+1)); echo $i >> ${file}; sleep 0.02; done`;
  const answer = await post(socket, '/processes', { shell, process_id: 'counter' });
  expect(answer).toMatchObject({ outcome: 'answered', status: 201 });
  return () => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** Holds a sandbox from a process of its own. */
const HOLDER = `require('node:http')
  .request({ socketPath: process.argv[1], method: 'POST', path: '/api/v1/sandbox/hold' }, (response) =>
    response.pipe(process.stdout))
  .flushHeaders()`;

describe('the routes for the manager', () => {
  it('are served only on the control socket', async () => {
    const { daemon } = await start();
    expect((await daemon.call('POST', '/api/v1/sandbox/stop')).status).toBe(403);
    expect((await daemon.call('POST', '/api/v1/sandbox/hold')).status).toBe(403);
    expect((await daemon.call('GET', '/api/v1/sandbox/ports/80')).status).toBe(403);
    const without_token = await fetch(`${daemon.url}/api/v1/sandbox/stop`, { method: 'POST' });
    expect(without_token.status).toBe(401);
  });

  it('stop the daemon without a flush: pending records, including sandbox.killed, stay in the outbox', async () => {
    const consumer = await startConsumer();
    consumer.answer = (_, response) => response.writeHead(503).end();
    const { daemon, socket } = await start('--webhook-url', consumer.url, '--webhook-secret', SECRET);
    await consumer.arrival('sandbox.ready');
    const counted = await counting(socket);
    await eventually(() => expect(counted()).toBeGreaterThan(0));
    expect(await post(socket, '/sandbox/stop')).toMatchObject({ outcome: 'answered', status: 202 });
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
    expect(consumer.types).not.toContain('sandbox.killed');
    const outbox = new Database(join(daemon.state_dir, 'outbox.db'), { readonly: true });
    const rows = outbox
      .prepare('SELECT event_type, state, body FROM records JOIN deliveries USING (id) ORDER BY id')
      .all() as {
      event_type: string;
      state: string;
      body: string;
    }[];
    outbox.close();
    expect(rows.map(({ event_type }) => event_type)).toEqual([
      'sandbox.ready',
      'process.started',
      'process.exited',
      'sandbox.killed',
    ]);
    expect(rows.every(({ state }) => state === 'pending')).toBe(true);
    expect(JSON.parse(rows[3]?.body ?? '').payload).toMatchObject({ reason: 'api', signal: null });
  });

  it('stop a paused sandbox without delivering its pending records', async () => {
    const consumer = await startConsumer();
    const { daemon, socket } = await start('--webhook-url', consumer.url);
    await consumer.arrival('sandbox.ready');
    await post(socket, '/sandbox/pause', { reason: null, flush_ms: 2_000 });
    await consumer.arrival('sandbox.paused');
    await post(socket, '/sandbox/stop');
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
    expect(consumer.types).toEqual(['sandbox.ready', 'sandbox.paused']);
  });

  it('stop a daemon that is waiting for its init', async () => {
    const socket = join(scratchFolder(), 'control.sock');
    const daemon = launch(['--control-socket', socket, '--await-init']);
    await daemon.logged('listening');
    await post(socket, '/sandbox/stop');
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
  });

  it("tell the sandbox's own life as it is stored, also without a webhook, and publish stays refused", async () => {
    const socket = join(scratchFolder(), 'control.sock');
    const daemon = launch(['--control-socket', socket, '--await-init']);
    await daemon.logged('listening');
    const key = '5a'.repeat(32);
    await post(socket, '/sandbox/init', { sandbox_id: 'sbx_1', team_id: 't', record_key: key });
    const started = await post(socket, '/processes', { command: ['true'] });
    expect(started).toMatchObject({ status: 201 });
    await post(socket, '/sandbox/pause', { reason: 'because' });
    const life = async (query: string) => {
      const path = `/sandbox/events${query}`;
      const answer = await requestDaemon(socket, { method: 'GET', path, scope: 'manage', within_ms: 20_000 });
      return answer.outcome === 'answered' ? (answer.data as { records: LifecycleRecord[] }) : answer;
    };
    const { records } = (await life('')) as { records: LifecycleRecord[] };
    expect(records).toMatchObject([
      { event_type: 'sandbox.ready', sequence: 1, sandbox_id: 'sbx_1' },
      { event_type: 'sandbox.paused', sequence: 2 },
    ]);
    for (const { mac, ...record } of records) {
      expect(isAuthentic(recordKey(key) as Buffer, { ...record, mac: Buffer.from(mac, 'hex') })).toBe(true);
    }
    expect(await life('?after=1')).toMatchObject({ records: [{ sequence: 2 }] });
    expect(await post(socket, '/webhook/publish', { payload: {} })).toMatchObject({ status: 409 });
    await post(socket, '/sandbox/resume');
    expect(await life('?after=2&limit=1')).toMatchObject({ records: [{ event_type: 'sandbox.resumed' }] });
    await post(socket, '/sandbox/stop');
    await daemon.ended;
  });

  it('freeze the sandbox for a hold without an event, with a copy of the outbox', async () => {
    const consumer = await startConsumer();
    const { daemon, socket } = await start('--webhook-url', consumer.url);
    const copy = join(daemon.state_dir, 'outbox-copy.db');
    const counted = await counting(socket);
    const held = await heldStill(socket);
    const before = counted();
    expect(held.isKept()).toBe(true);
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    const outbox = new Database(copy, { readonly: true });
    expect(outbox.pragma('integrity_check', { simple: true })).toBe('ok');
    expect(outbox.prepare('SELECT count(*) FROM records').pluck().get()).toBe(2);
    outbox.close();
    expect(await requestDaemon(socket, { method: 'GET', path: '/sandbox', within_ms: 5_000 })).toMatchObject({
      data: { state: 'running' },
    });
    expect(counted()).toBe(before);
    await held.release();
    expect(held.isKept()).toBe(false);
    expect(existsSync(copy)).toBe(false);
    await eventually(() => expect(counted()).toBeGreaterThan(before));
    await daemon.publish('{"after":1}');
    await consumer.arrival('agent.event');
    expect(consumer.types).not.toContain('sandbox.paused');
    expect(consumer.types).not.toContain('sandbox.resumed');
  });

  it('keep a paused sandbox paused during a hold, which a resume ends', async () => {
    const { socket } = await start();
    await post(socket, '/sandbox/pause', {});
    const state = () => requestDaemon(socket, { method: 'GET', path: '/sandbox', within_ms: 5_000 });
    const held = await heldStill(socket);
    expect(await state()).toMatchObject({ data: { state: 'paused' } });
    expect(held.isKept()).toBe(true);
    await post(socket, '/sandbox/resume', {});
    expect(await state()).toMatchObject({ data: { state: 'running' } });
    await eventually(() => expect(held.isKept()).toBe(false));
    await held.release();
  });

  it('resume a sandbox when the client that held it has died', async () => {
    const { daemon, socket } = await start();
    const counted = await counting(socket);
    const holder = spawn(process.execPath, ['-e', HOLDER, socket]);
    await new Promise((resolve) => holder.stdout.once('data', resolve));
    const before = counted();
    holder.kill('SIGKILL');
    await eventually(() => expect(counted()).toBeGreaterThan(before));
    expect(existsSync(join(daemon.state_dir, 'outbox-copy.db'))).toBe(false);
  });
});
