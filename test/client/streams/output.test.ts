import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createDaemonClient, createManagerClient, type OutputEvent } from '../../../src/client/client.ts';
import { proofOf } from '../../../src/client/streams/socket.ts';
import { FrailLine } from '../../support/client/frail-line.ts';
import { startDaemon } from '../../support/daemon/running-daemon.ts';
import { DaemonRuntime } from '../../support/manager/daemon-runtime.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** No text, and long enough for many connections. */
const WRITES = 'printf "\\377\\n"; seq 1 100000; echo ends >&2; exit 3';
const WRITTEN = Buffer.from(
  `\xff\n${Array.from({ length: 100_000 }, (_, i) => `${i + 1}\n`).join('')}`,
  'latin1',
);

/** What was read: the bytes of each stream, the gaps, and the exit code. */
async function readAll(events: AsyncIterable<OutputEvent>) {
  const streams: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] };
  let gaps = 0;
  for await (const event of events) {
    if (event.type === 'output') streams[event.stream].push(event.bytes);
    if (event.type === 'gone') gaps += 1;
    if (event.type === 'exit') {
      const { stdout, stderr } = streams;
      const { exit_code } = event.process;
      return { stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString(), gaps, exit_code };
    }
  }
  throw new Error('the output has no end');
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

it('output is read byte for byte to its end, however often the connection breaks', async () => {
  const { port, token } = await startDaemon();
  const line = await FrailLine.to(port, 150_000);
  const daemon = createDaemonClient({ url: line.url, token });
  const { process_id } = await daemon.POST('/api/v1/processes', {
    body: { shell: WRITES },
    query: { lossless: true },
  });
  const told: boolean[] = [];
  const { stdout, stderr, gaps, exit_code } = await readAll(
    daemon.sandbox.output(process_id, { lossless: true, onConnection: (each) => told.push(each) }),
  );
  // Connected at first, then lost and connected in turn.
  expect(told.length).toBeGreaterThan(2);
  expect(told).toEqual(told.map((_, index) => index % 2 === 0));
  expect(sha256(stdout)).toBe(sha256(WRITTEN));
  expect([stderr, gaps, exit_code]).toEqual(['ends\n', 0, 3]);
  expect(line.breaks).toBeGreaterThan(1);

  const tail: string[] = [];
  for await (const event of daemon.sandbox.output(process_id, {
    stream: 'stdout',
    tail_lines: 2,
    follow: false,
  })) {
    if (event.type === 'output') tail.push(Buffer.from(event.bytes).toString('latin1'));
  }
  expect(tail.join('')).toBe('99999\n100000\n');
});

it('a terminal is attached to through a manager: what is typed comes back once, over broken connections', async () => {
  const runtime = new DaemonRuntime();
  const { manager, client } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, {
    runtime,
  });
  const team = await client('team_1', 'sandboxes:write');
  const line = await FrailLine.to(Number(new URL(manager.url).port), 1_000_000);
  const sandbox = createManagerClient({ url: line.url, token: team.token }).sandbox(await team.claim());
  const body = {
    shell: 'stty -echo; read a; echo "<$a>"; read b; echo "<$b> $(stty size)"; cat; exit 4',
    pty: { cols: 80, rows: 24 },
  };
  const { process_id } = await sandbox.POST('/api/v1/processes', { body });
  const path = { process_id };
  expect((await sandbox.GET('/api/v1/processes/{process_id}', { path })).state).toBe('running');
  // @ts-expect-error a manager does not pass this route through
  await expect(sandbox.GET('/api/v1/sandbox')).rejects.toMatchObject({ code: 'not_found' });
  const terminal = sandbox.attach(process_id);
  onTestFinished(() => terminal.close());
  terminal.resize(100, 40);
  terminal.write('first\n');
  let shown = '';
  let exit_code: number | null = null;
  for await (const event of terminal) {
    if (event.type === 'exit') exit_code = event.process.exit_code;
    if (event.type === 'lost') terminal.write(new TextEncoder().encode('second\n'));
    if (event.type !== 'output') continue;
    shown += new TextDecoder().decode(event.bytes);
    if (shown.endsWith('<first>\r\n')) line.breakAll();
    if (shown.endsWith('40 100\r\n')) terminal.end();
  }
  expect(shown).toContain('<first>\r\n<second> 40 100\r\n');
  expect(shown.match(/<first>/g)).toHaveLength(1);
  expect(exit_code).toBe(4);
});

it('what cannot be attached to is an error of its own, and a caller who leaves ends the wait', async () => {
  const { port, token } = await startDaemon();
  const url = `http://127.0.0.1:${port}`;
  const read = async (events: AsyncIterable<unknown>) => {
    for await (const _ of events);
  };
  const { sandbox } = createDaemonClient({ url, token });
  await expect(read(sandbox.attach('nobody'))).rejects.toMatchObject({ code: 'not_found' });
  await expect(read(sandbox.output('nobody'))).rejects.toMatchObject({ code: 'not_found' });
  const stranger = createDaemonClient({ url, token: 'wrong' }).sandbox;
  await expect(read(stranger.attach('nobody'))).rejects.toMatchObject({ code: 'unauthorized' });

  const runtime = new DaemonRuntime();
  const { manager, client } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, {
    runtime,
  });
  const team = await client('team_1', 'sandboxes:write');
  const sandbox_id = await team.claim();
  const { process_id } = (await team.post(`/api/v1/sandboxes/${sandbox_id}/processes`, { shell: 'sleep 60' }))
    .data;
  const reader = await client('team_1', 'sandboxes:read');
  const read_only = createManagerClient({ url: manager.url, token: reader.token }).sandbox(sandbox_id);
  const refused = { code: 'forbidden', details: { scope: 'sandboxes:write' } };
  await expect(read(read_only.attach(process_id))).rejects.toMatchObject(refused);

  const leaving = new AbortController();
  const events = sandbox.events({ signal: leaving.signal });
  const waiting = events.next();
  leaving.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
});

it('in a browser, which can set no header of a WebSocket, a terminal proves its caller to a manager by subprotocols', async () => {
  const runtime = new DaemonRuntime();
  const { manager, client } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, {
    runtime,
  });
  const team = await client('team_1', 'sandboxes:write');
  const sandbox_id = await team.claim();
  const processes = `/api/v1/sandboxes/${sandbox_id}/processes`;
  const { process_id } = (await team.post(processes, { shell: 'echo out' })).data;
  const url = `${manager.url.replace('http', 'ws')}${processes}/${process_id}/attach`;
  const socket = new WebSocket(url, proofOf(team.token, true));
  const first = await new Promise((resolve, reject) => {
    socket.addEventListener('message', ({ data }) => resolve(data), { once: true });
    socket.addEventListener('error', reject, { once: true });
  });
  socket.close();
  expect(JSON.parse(String(first))).toMatchObject({ type: 'output', data: 'out\n' });
});
