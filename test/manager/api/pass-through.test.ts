import { request as httpRequest, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { eventually } from '../../support/eventually.ts';
import { DaemonRuntime } from '../../support/manager/daemon-runtime.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

async function scene(config: object = {}) {
  const runtime = new DaemonRuntime();
  const running = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, { runtime });
  const writer = await running.client('team_1', 'sandboxes:write');
  const reader = await running.client('team_1', 'sandboxes:read');
  const id = await writer.claim(config);
  return { ...running, runtime, writer, reader, id, path: `/api/v1/sandboxes/${id}` };
}

describe("a sandbox's own routes through the manager", () => {
  it('run a process and give its output', async () => {
    const { writer, reader, path } = await scene();
    const ran = await writer.post(`${path}/processes?wait_ms=20000`, {
      shell: 'echo out; echo err >&2; exit 3',
    });
    expect(ran.status).toBe(201);
    expect(ran.data).toMatchObject({
      state: 'exited',
      exit_code: 3,
      output: { stdout: 'out\n', stderr: 'err\n' },
    });
    expect(ran.headers.get('x-request-id')).toMatch(/./);
    const list = await reader.get(`${path}/processes`);
    expect(list.data.processes).toMatchObject([{ process_id: ran.data.process_id }]);
    expect((await reader.get(`${path}/webhook/deliveries`)).data).toMatchObject({ next_cursor: null });
  });

  it("give the daemon's refusals as they are", async () => {
    const { writer, path } = await scene();
    const bad = await writer.post(`${path}/processes`, { command: [] });
    expect(bad.error).toMatchObject({ code: 'invalid_request', details: { field: 'command' } });
    expect((await writer.get(`${path}/processes/proc_nobody`)).status).toBe(404);
    expect((await writer.call('DELETE', `${path}/processes`)).status).toBe(405);
    expect((await writer.post(`${path}/processes`, 'x'.repeat(1024 * 1024 + 1))).status).toBe(413);
  });

  it('lead nowhere else', async () => {
    const { manager, writer, path } = await scene();
    for (const rest of [
      '/processes/../sandbox',
      '/processes/..%2f..%2fsandbox',
      '/processes/%2e%2e/sandbox',
    ]) {
      const { port } = new URL(manager.url);
      const status = await new Promise((resolve, reject) => {
        httpRequest({ port, path: path + rest, headers: { authorization: `Bearer ${writer.token}` } })
          .once('response', (response) => resolve(response.resume().statusCode))
          .once('error', reject)
          .end();
      });
      expect(status, rest).toBe(404);
    }
    expect((await writer.get(`${path}/sandbox`)).status).toBe(404);
  });

  it('stream both ways while a process runs', async () => {
    const { manager, writer, path } = await scene();
    const { data } = await writer.post(`${path}/processes`, { command: ['cat'], stdin: 'pipe' });
    const process_path = `${manager.url}${path}/processes/${data.process_id}`;
    const headers = { authorization: `Bearer ${writer.token}` };
    const output = await fetch(`${process_path}/output?follow=true&stream=stdout`, {
      headers: { ...headers, accept: 'application/octet-stream' },
    });
    const stdin = httpRequest(`${process_path}/stdin?end=true`, { method: 'POST', headers });
    const answered = new Promise<number | undefined>((resolve) => {
      stdin.once('response', (response) => resolve(response.resume().statusCode));
    });
    stdin.write('first\n');
    const reader = output.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('first\n');
    const large = 'x'.repeat(3 * 1024 * 1024);
    stdin.end(large);
    expect(await answered).toBe(204);
    let received = 0;
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read())
      received += chunk.value.length;
    expect(received).toBe(large.length);
  });

  it('carry files of any size both ways, with ranges, conditions and refusals', async () => {
    const { manager, writer, reader, path } = await scene();
    const file = join(scratchFolder(), 'new/a b%ü');
    const url = `${manager.url}${path}/files?path=${encodeURIComponent(file)}`;
    const as = ({ token }: { token: string }) => ({ authorization: `Bearer ${token}` });
    const body = Buffer.alloc(5_000_000, 'any bytes ');
    expect((await fetch(url, { method: 'PUT', body, headers: as(reader) })).status).toBe(403);
    const written = await fetch(url, {
      method: 'PUT',
      body,
      headers: { ...as(writer), 'if-none-match': '*' },
    });
    expect(written.status).toBe(200);
    const { data } = (await written.json()) as { data: { etag: string } };
    const whole = await fetch(url, { headers: as(reader) });
    expect(Buffer.from(await whole.arrayBuffer()).equals(body)).toBe(true);
    const part = await fetch(url, { headers: { ...as(reader), range: 'bytes=4-8', 'if-range': data.etag } });
    expect([part.status, await part.text(), part.headers.get('content-range')]).toEqual([
      206,
      'bytes',
      'bytes 4-8/5000000',
    ]);
    const head = await fetch(url, { method: 'HEAD', headers: as(reader) });
    expect([head.status, head.headers.get('content-length')]).toEqual([200, '5000000']);
    const again = await fetch(url, { method: 'PUT', body, headers: { ...as(writer), 'if-none-match': '*' } });
    expect(await again.json()).toMatchObject({ error: { code: 'precondition_failed' } });
    const listed = await reader.get(`${path}/files/list?path=${encodeURIComponent(join(file, '..'))}`);
    expect(listed.data.entries).toMatchObject([{ name: 'a b%ü', size: 5_000_000 }]);
    expect((await reader.get(`${path}/files/stat?path=/%ff`)).error?.details).toEqual({ field: 'path' });
  });

  it('charge each file operation once, whatever it does inside', async () => {
    const { manager, client, writer, path } = await scene();
    const admin = await client('team_1', 'admin');
    const rate = { limit_value: 1_000, interval_ms: 3_600_000_000, burst_value: 1_000 };
    expect((await admin.call('PUT', '/internal/v1/teams/team_1/quotas/api_requests', rate)).status).toBe(200);
    const file = join(scratchFolder(), 'file');
    const at = `path=${encodeURIComponent(file)}`;
    const left: number[] = [];
    const ask = async (method: string, rest: string, body?: string) => {
      const answer = await fetch(`${manager.url}${path}/files${rest}`, {
        method,
        headers: { authorization: `Bearer ${writer.token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body }),
      });
      await answer.arrayBuffer();
      expect(answer.ok).toBe(true);
      left.push(Number(/r=(\d+)/.exec(answer.headers.get('ratelimit') ?? '')?.[1]));
    };
    await ask('PUT', `?${at}`, 'x'.repeat(500_000));
    await ask('GET', `?${at}`);
    await ask('HEAD', `?${at}`);
    await ask('POST', '/copy', JSON.stringify({ source: file, destination: `${file}-2` }));
    await ask('GET', `/archive?${at}`);
    await ask('GET', `/list?path=${encodeURIComponent(join(file, '..'))}`);
    await ask('DELETE', `?${at}`);
    expect(left[0]).toBeGreaterThan(900);
    expect(left).toEqual(left.map((_, i) => (left[0] as number) - i));
  });

  it('read the files of a paused sandbox, and write them only where it may resume', async () => {
    const { writer, path } = await scene();
    const file = join(scratchFolder(), 'file');
    const url = `${path}/files?path=${encodeURIComponent(file)}`;
    expect((await writer.post(`${url}&mkdir=true`)).status).toBe(201);
    expect((await writer.post(`${path}/pause`)).status).toBe(200);
    expect((await writer.get(`${path}/files/stat?path=${encodeURIComponent(file)}`)).data.type).toBe('dir');
    expect((await writer.call('DELETE', url)).error?.code).toBe('conflict');
    await writer.call('PUT', path, { config: { auto_resume: true } });
    expect((await writer.call('DELETE', url)).status).toBe(200);
  });

  it('hold a process up for a reader that takes its time, also across a pause', async () => {
    const { manager, writer, path } = await scene();
    const total = 30_000_000;
    const command = ['head', '-c', String(total), '/dev/zero'];
    const { data } = await writer.post(`${path}/processes?lossless=true`, { command });
    const one = `${path}/processes/${data.process_id}`;
    const body = await new Promise<IncomingMessage>((resolve, reject) => {
      httpRequest(`${manager.url}${one}/output?stream=stdout&follow=true&lossless=true`, {
        headers: { authorization: `Bearer ${writer.token}`, accept: 'application/octet-stream' },
      })
        .once('response', resolve)
        .once('error', reject)
        .end();
    });
    let bytes = 0;
    for await (const chunk of body) {
      const is_first = bytes === 0;
      bytes += chunk.length;
      if (!is_first) continue;
      expect((await writer.post(`${path}/pause`)).status).toBe(200);
      expect((await writer.post(`${path}/resume`)).status).toBe(200);
      expect((await writer.get(one)).data.state).toBe('running');
    }
    expect(bytes).toBe(total);
  });

  it('attach to a terminal, for those who may write', async () => {
    const { manager, writer, reader, path } = await scene();
    const { data } = await writer.post(`${path}/processes`, {
      command: ['cat'],
      pty: { cols: 80, rows: 24 },
    });
    const url = `${manager.url.replace('http', 'ws')}${path}/processes/${data.process_id}/attach`;
    const refused = new WebSocket(url, { headers: { authorization: `Bearer ${reader.token}` } });
    const status = await new Promise((resolve) => {
      refused.on('unexpected-response', (_request, response) => resolve(response.statusCode));
    });
    expect(status).toBe(403);
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${writer.token}` } });
    onTestFinished(() => socket.terminate());
    const frames: { type: string; data?: string }[] = [];
    socket.on('message', (frame) => frames.push(JSON.parse(String(frame))));
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    socket.send(JSON.stringify({ type: 'stdin', data: 'hello\n' }));
    await eventually(() => expect(frames.map(({ data }) => data).join('')).toContain('hello'));
    socket.send(JSON.stringify({ type: 'signal', signal: 'SIGKILL' }));
    await eventually(() => expect(frames.at(-1)?.type).toBe('exit'));
    const missing = new WebSocket(url.replace(data.process_id, 'proc_nobody'), {
      headers: { authorization: `Bearer ${writer.token}` },
    });
    const answer = await new Promise<{ statusCode?: number; body: string }>((resolve) => {
      missing.on('unexpected-response', async (_request, response) =>
        resolve({ statusCode: response.statusCode as number, body: await text(response) }),
      );
    });
    expect(answer).toMatchObject({ statusCode: 404, body: expect.stringContaining('not_found') });
  });

  it('need the right to write for whatever is no reading', async () => {
    const { reader, path } = await scene();
    expect((await reader.post(`${path}/processes`, { command: ['true'] })).status).toBe(403);
    expect((await reader.call('DELETE', `${path}/processes/x`)).status).toBe(403);
    expect((await reader.post(`${path}/webhook/deliveries/replay?state=failed`)).status).toBe(403);
  });

  it('are refused while it is paused, and resume it where it is set to', async () => {
    const { writer, path, runtime, id } = await scene();
    await writer.post(`${path}/pause`);
    const refused = await writer.get(`${path}/processes`);
    expect(refused.error).toMatchObject({ code: 'conflict', message: 'The sandbox is paused.' });
    expect((await writer.get(`${path}/webhook/deliveries`)).status).toBe(200);
    await writer.call('PUT', path, { config: { auto_resume: true } });
    const calls = await Promise.all(Array.from({ length: 5 }, () => writer.get(`${path}/processes`)));
    expect(calls.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect((await writer.get(path)).data).toMatchObject({ status: 'running', runtime_generation: 2 });
    expect(runtime.states.get(id)).toBe('running');
  });

  it('are unavailable when the daemon is gone, which fails the sandbox', async () => {
    const { writer, path, runtime, id } = await scene();
    await runtime.lose(id);
    expect((await writer.get(`${path}/processes`)).error?.code).toBe('unavailable');
    await eventually(async () => expect((await writer.get(path)).data.status).toBe('failed'), {
      timeout: 60_000,
    });
    expect((await writer.post(`${path}/pause`)).error?.code).toBe('conflict');
    expect((await writer.get(`${path}/processes`)).error?.code).toBe('conflict');
    expect((await writer.call('DELETE', path)).status).toBe(202);
  });

  it('say so where the runtime has no daemons', async () => {
    const running = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`);
    const writer = await running.client('team_1', 'sandboxes:write');
    const { error } = await writer.get(`/api/v1/sandboxes/${await writer.claim()}/processes`);
    expect(error?.code).toBe('conflict');
  });
});
