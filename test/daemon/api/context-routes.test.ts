import { once } from 'node:events';
import { beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { LocalDaemon } from '../../support/daemon/local-daemon.ts';

let daemon: LocalDaemon;

beforeEach(async () => {
  daemon = await LocalDaemon.start();
});

const create = (json: object) => daemon.ask('/contexts', { json });

/** Every frame of a context's WebSocket, and how it was closed. */
async function frames(id: string, send: object[] = []): Promise<{ received: unknown[]; code: number }> {
  const url = `${daemon.url.replace('http', 'ws')}/contexts/${id}/ws`;
  const socket = new WebSocket(url, { headers: daemon.authorization });
  const received: unknown[] = [];
  socket.on('message', (data) => received.push(JSON.parse(String(data))));
  const closed = once(socket, 'close');
  await once(socket, 'open');
  for (const frame of send) socket.send(JSON.stringify(frame));
  const [code] = await closed;
  return { received, code };
}

describe('contexts', () => {
  it('are processes under another name', async () => {
    const { process_id } = await daemon.run({ shell: 'exit 0' }, '?wait_ms=30000');
    const cmd = { command: ['sh', '-c', 'pwd; echo $ONE; cat; exit 6'] };
    const made = await create({
      cmd,
      cwd: '/',
      env_vars: { ONE: '1' },
      ttl_sec: 60,
      wait_until_done: true,
    });
    expect(made.status).toBe(201);
    const { id } = made.data;
    const shown = {
      id,
      type: 'cmd',
      cwd: '/',
      running: false,
      paused: false,
      created_at: made.data.created_at,
      exit_code: 6,
      state: 'stopped',
    };
    const output = { output_raw: '/\n1\n', stdout: '/\n1\n', stderr: '' };
    expect(made.data).toEqual({ ...shown, ...output });
    expect((await daemon.ask(`/contexts/${id}`)).data).toEqual({ ...shown, ...output });
    const { contexts, next_cursor } = (await daemon.ask('/contexts')).data;
    expect([contexts, next_cursor]).toMatchObject([[shown, { id: process_id }], null]);
    expect((await daemon.ask(`/processes/${id}`)).data.command).toEqual(cmd.command);
  });

  it('of other kinds are not implemented, and say so', async () => {
    for (const body of [
      { type: 'repl', repl: { alias: 'python', anything: 1 } },
      {},
      { type: 'cmd', cmd: { command: ['true'] }, idle_timeout_sec: 5 },
    ]) {
      const { status, error } = await create(body);
      expect([status, error.code]).toEqual([501, 'not_implemented']);
    }
    expect((await daemon.ask('/contexts')).data.contexts).toEqual([]);
  });

  it.each([
    [{ type: 'cmd' }, 'cmd'],
    [{ type: 'shell' }, 'type'],
    [{ cmd: { command: [] } }, 'cmd.command'],
    [{ cmd: { command: ['true'], shell: 'x' } }, 'cmd.shell'],
    [{ cmd: { command: ['true'] }, ttl_sec: -1 }, 'ttl_sec'],
    [{ cmd: { command: ['true'] }, pty_size: { rows: 0, cols: 1 } }, 'pty_size.rows'],
    [{ cmd: { command: ['true'] }, env_vars: { 'a=b': '' } }, 'env_vars'],
  ])('%j is refused by name', async (body, field) => {
    const { status, error } = await create(body);
    expect(status).toBe(400);
    expect(error.details?.field).toContain(field);
  });

  it('end with their time, and start anew under their id without their output', async () => {
    const once_only = 'test -e "$0" && exec sleep 60; echo first; touch "$0"; kill -SEGV $$';
    const file = `/tmp/context-${process.pid}-${Math.trunc(performance.now() * 1e3)}`;
    const cmd = { command: ['sh', '-c', once_only, file] };
    const { data } = await create({ cmd, wait_until_done: true });
    expect(data).toMatchObject({ exit_code: 139, state: 'crashed', stdout: 'first\n' });
    const restarted = await daemon.ask(`/contexts/${data.id}/restart`, { method: 'POST' });
    expect(restarted.data).toMatchObject({ id: data.id, running: true });
    expect((await daemon.ask(`/contexts/${data.id}`)).data.stdout).toBe('');
    expect((await daemon.ask(`/contexts/${data.id}`, { method: 'DELETE' })).data).toEqual({ deleted: true });
    expect((await daemon.ask(`/contexts/${data.id}`)).data.running).toBe(false);
    const unknown = await daemon.ask('/contexts/nobody/restart', { method: 'POST' });
    expect(unknown.error.code).toBe('not_found');
    await create({ cmd: { command: ['rm', file] }, wait_until_done: true });
  });

  it('are not ended by a restart that cannot start them', async () => {
    const { data } = await create({ cmd: { command: ['sleep', '60'] } });
    await daemon.ask('/sandbox/pause', { json: {} });
    const refused = await daemon.ask(`/contexts/${data.id}/restart`, { method: 'POST' });
    expect(refused.error.code).toBe('conflict');
    expect((await daemon.ask(`/contexts/${data.id}`)).data.paused).toBe(true);
    await daemon.ask('/sandbox/resume', { json: {} });
    expect((await daemon.ask(`/contexts/${data.id}`)).data).toMatchObject({ running: true, paused: false });
  });

  it('talk over a WebSocket: input, output, errors and the end', async () => {
    const { data } = await create({
      cmd: { command: ['sh', '-c', 'read a; echo "got $a"; echo err >&2; exit 7'] },
    });
    const { received, code } = await frames(data.id, [
      { type: 'stdin', data: 'x' },
      { type: 'resize', rows: 1, cols: 1 },
      { type: 'input', data: 'typed\n', requestId: 'req-1' },
    ]);
    expect(code).toBe(1000);
    expect(received).toEqual(
      expect.arrayContaining([
        { type: 'error', error: 'type: must be one of input, resize, signal' },
        { type: 'error', error: 'The process has no terminal.' },
        { type: 'output', source: 'stdout', data: 'got typed\n' },
        { type: 'output', source: 'stderr', data: 'err\n' },
      ]),
    );
    expect(received.at(-1)).toEqual({ type: 'done', exit_code: 7, state: 'stopped' });
    // At a terminal nobody can tell them apart.
    const { data: of_terminal } = await create({
      ...{ cmd: { command: ['sh', '-c', 'echo out; echo err >&2'] }, pty_size: { rows: 24, cols: 80 } },
    });
    const { received: shown } = await frames(of_terminal.id);
    expect(shown[0]).toMatchObject({ type: 'output', source: 'pty' });
    // A later client gets it all again.
    expect((await frames(data.id)).received).toEqual([
      { type: 'output', source: 'stdout', data: 'got typed\n' },
      { type: 'output', source: 'stderr', data: 'err\n' },
      { type: 'done', exit_code: 7, state: 'stopped' },
    ]);
  });
});
