import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { beforeEach, describe, expect, it } from 'vitest';
import { type ClientOptions, WebSocket } from 'ws';
import { LocalDaemon } from '../../support/daemon/local-daemon.ts';
import { eventually } from '../../support/eventually.ts';

let daemon: LocalDaemon;

beforeEach(async () => {
  daemon = await LocalDaemon.start();
});

// biome-ignore lint/suspicious/noExplicitAny: what the daemon sends is what a test looks at.
type Frame = any;

/** A client at a process: every frame that came, and how the connection was closed. */
class Attached {
  readonly socket: WebSocket;
  readonly frames: Frame[] = [];
  readonly closed: Promise<number>;

  constructor(process_id: string, query = '', options: ClientOptions = {}) {
    const url = `${daemon.url.replace('http', 'ws')}/processes/${process_id}/attach${query}`;
    this.socket = new WebSocket(url, { headers: daemon.authorization, ...options });
    this.socket.on('message', (data) => this.frames.push(JSON.parse(String(data))));
    this.closed = once(this.socket, 'close').then(([code]) => code);
    this.closed.catch(() => {});
  }

  get text(): string {
    return this.frames.flatMap(({ type, data }) => (type === 'output' ? [data] : [])).join('');
  }

  send(frame: unknown): void {
    this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame));
  }

  async open(): Promise<this> {
    await once(this.socket, 'open');
    return this;
  }

  async until(is_there: (attached: this) => unknown): Promise<void> {
    await eventually(() => expect(is_there(this), JSON.stringify(this.frames)).toBeTruthy(), {
      timeout: 60_000,
      interval: 5,
    });
  }
}

describe('GET /processes/{id}/attach', () => {
  it('sends the output and the exit, then closes with 1000', async () => {
    const process = await daemon.run({ shell: 'echo out; echo err >&2; exit 5' }, '?wait_ms=30000');
    const { output: _, ...view } = process;
    const attached = new Attached(process.process_id);
    expect(await attached.closed).toBe(1000);
    expect(attached.frames).toEqual([
      { type: 'output', stream: 'stdout', offset: 0, data: 'out\n' },
      { type: 'output', stream: 'stderr', offset: 0, data: 'err\n' },
      { type: 'exit', process: view },
    ]);
  });

  it('misses no byte of a process that is held up for it', async () => {
    const shell = 'head -c 40000000 /dev/urandom | tee /dev/stderr | sha256sum';
    const { process_id } = await daemon.run({ shell }, '?lossless=true');
    const hash = createHash('sha256');
    const attached = new Attached(process_id, '?lossless=true');
    attached.socket.on('message', (data) => {
      const frame = JSON.parse(String(data));
      if (frame.stream === 'stderr') hash.update(Buffer.from(frame.data, frame.encoding));
      attached.socket.pause();
      setImmediate(() => attached.socket.resume());
    });
    expect(await attached.closed).toBe(1000);
    const told = attached.frames.find(({ stream }) => stream === 'stdout').data;
    expect(told).toBe(`${hash.digest('hex')}  -\n`);
  });

  it('passes stdin, resizes and signals on to the process', async () => {
    const { process_id } = await daemon.run({
      shell:
        'trap "stty size" WINCH; trap "echo got usr1" USR1; read line; echo "<$line>"; while :; do sleep 0.05; done',
      pty: { cols: 80, rows: 24 },
    });
    const attached = await new Attached(process_id).open();
    attached.send({ type: 'stdin', data: 'grü' });
    attached.send({ type: 'stdin', data: Buffer.from('ße\n').toString('base64'), encoding: 'base64' });
    await attached.until(({ text }) => text.includes('<grüße>'));
    attached.send({ type: 'resize', cols: 132, rows: 50 });
    await attached.until(({ text }) => text.includes('50 132'));
    attached.send({ type: 'signal', signal: 'SIGUSR1' });
    await attached.until(({ text }) => text.includes('got usr1'));
    attached.send({ type: 'signal', signal: 'KILL' });
    expect(await attached.closed).toBe(1000);
    expect(attached.frames.at(-1)).toMatchObject({
      type: 'exit',
      process: { signal: 'SIGKILL', exit_code: 137 },
    });
  });

  it('serves several clients of one terminal, which survives a lost connection and continues from an offset', async () => {
    const { process_id } = await daemon.run({ command: ['cat'], pty: { cols: 80, rows: 24 } });
    const first = await new Attached(process_id).open();
    const second = await new Attached(process_id).open();
    first.send({ type: 'stdin', data: 'one\n' });
    for (const each of [first, second]) await each.until(({ text }) => text === 'one\r\none\r\n');
    first.socket.terminate();
    second.send({ type: 'stdin', data: 'two\n' });
    await second.until(({ text }) => text.endsWith('two\r\ntwo\r\n'));
    const third = await new Attached(process_id, '?offset=10').open();
    await third.until(({ text }) => text === 'two\r\ntwo\r\n');
    expect(third.frames[0]).toMatchObject({ stream: 'stdout', offset: 10 });
    third.send({ type: 'stdin', data: '\x04' });
    expect(await Promise.all([second.closed, third.closed])).toEqual([1000, 1000]);
  });

  it('answers a frame that fails with its error, and continues', async () => {
    const { process_id } = await daemon.run({ command: ['sleep', '1000'] });
    const attached = await new Attached(process_id).open();
    const bad: [unknown, string, string?][] = [
      ['{', 'invalid_request', 'frame'],
      ['[]', 'invalid_request', 'frame'],
      [{ type: 'output' }, 'invalid_request', 'type'],
      [{ type: 'toString' }, 'invalid_request', 'type'],
      [{ type: 'stdin', data: 1 }, 'invalid_request', 'data'],
      [{ type: 'stdin', data: 'x', encoding: 'hex' }, 'invalid_request', 'encoding'],
      [{ type: 'stdin', data: 'x*', encoding: 'base64' }, 'invalid_request', 'data'],
      [{ type: 'stdin', data: 'x', end: 1 }, 'invalid_request', 'end'],
      [{ type: 'stdin', data: 'x', last: true }, 'invalid_request', 'last'],
      [{ type: 'resize', cols: 80 }, 'invalid_request', 'resize.rows'],
      [{ type: 'signal', signal: 'SIGNONE' }, 'invalid_request', 'signal'],
      [{ type: 'stdin', data: 'no pipe' }, 'conflict'],
      [{ type: 'resize', cols: 80, rows: 24 }, 'conflict'],
    ];
    for (const [index, [frame, code, field]] of bad.entries()) {
      attached.send(frame);
      await attached.until(({ frames }) => frames.length === index + 1);
      const { type, error } = attached.frames[index];
      expect([type, error.code, error.details?.field], JSON.stringify(frame)).toEqual(['error', code, field]);
    }
    attached.socket.send(Buffer.from('{}'));
    await attached.until(({ frames }) => frames.length === bad.length + 1);
    attached.socket.send(`{"type":"stdin","data":"${'x'.repeat(1024 * 1024)}"}`);
    expect(await attached.closed).toBe(1009);
    expect((await daemon.ask(`/processes/${process_id}`)).data.state).toBe('running');
  });

  it('closes with 1008 after 16 malformed frames, however many arrive', async () => {
    const { process_id } = await daemon.run({ command: ['sleep', '1000'], stdin: 'pipe' });
    const attached = await new Attached(process_id).open();
    for (let i = 0; i < 20_000; i++) attached.send('x');
    expect(await attached.closed).toBe(1008);
    expect(attached.frames).toHaveLength(16);
    expect((await daemon.ask(`/processes/${process_id}`)).data.state).toBe('running');
  });

  it('reads no further while the process does not read, whatever the size of the frames', async () => {
    const { process_id } = await daemon.run({ command: ['sleep', '1000'], stdin: 'pipe' });
    const attached = await new Attached(process_id).open();
    await daemon.ask(`/processes/${process_id}/stdin`, { body: 'x'.repeat(65_536) });
    // More than the kernel keeps for both sides of a connection.
    for (let i = 0; i < 600_000; i++) attached.send('{"type":"stdin","data":"x"}');
    let [before, looks] = [-1, 0];
    await eventually(
      () => {
        looks = attached.socket.bufferedAmount === before ? looks + 1 : 0;
        before = attached.socket.bufferedAmount;
        expect(looks).toBe(20);
      },
      { timeout: 60_000, interval: 50 },
    );
    expect(before).toBeGreaterThan(0);
  });

  it('delivers signals while stdin waits for a process that does not read', async () => {
    const { process_id } = await daemon.run({ command: ['sleep', '1000'], stdin: 'pipe' });
    const attached = await new Attached(process_id).open();
    for (let i = 0; i < 8; i++) attached.send({ type: 'stdin', data: 'x'.repeat(100_000) });
    attached.send({ type: 'signal', signal: 'SIGTERM' });
    expect(await attached.closed).toBe(1000);
    expect(attached.frames.at(-1).process).toMatchObject({ signal: 'SIGTERM' });
  });
});

describe('the handshake', () => {
  /** The status and error of a handshake that is refused. */
  async function refused(
    process_id: string,
    query: string,
    options: ClientOptions,
  ): Promise<[number, Frame]> {
    const { socket } = new Attached(process_id, query, options);
    socket.on('error', () => {});
    const [, response] = await once(socket, 'unexpected-response');
    const text = (await response.toArray()).join('');
    expect(response.headers['x-request-id']).toBeTruthy();
    return [response.statusCode, JSON.parse(text).error];
  }

  it('is refused with the same errors as any request', async () => {
    const { process_id } = await daemon.run({ command: ['cat'], stdin: 'pipe' });
    const headers = daemon.authorization;
    const bad: [string, string, ClientOptions, number, string][] = [
      [process_id, '', { headers: {} }, 401, 'unauthorized'],
      [process_id, '', { headers: { authorization: 'Bearer wrong' } }, 401, 'unauthorized'],
      [process_id, '', { headers, origin: 'http://evil.example' }, 403, 'forbidden'],
      [process_id, '', { headers: { ...headers, host: 'evil.example' } }, 403, 'forbidden'],
      [process_id, '', { headers: { ...headers, 'sec-fetch-site': 'cross-site' } }, 403, 'forbidden'],
      ['none', '', { headers }, 404, 'not_found'],
      [process_id, '?offset=1', { headers }, 400, 'invalid_request'],
      [process_id, '?offset=x', { headers }, 400, 'invalid_request'],
      [process_id, '?from=0', { headers }, 400, 'invalid_request'],
      [process_id, '', { headers, protocolVersion: 8 }, 400, 'invalid_request'],
    ];
    for (const [id, query, options, status, code] of bad) {
      const [answered, error] = await refused(id, query, options);
      expect([answered, error.code], `${id}${query}`).toEqual([status, code]);
    }
  });

  it('is required: a plain request is 400, and no other protocol is accepted', async () => {
    const { process_id } = await daemon.run({ command: ['cat'], stdin: 'pipe' });
    const plain = await daemon.ask(`/processes/${process_id}/attach`);
    expect([plain.status, plain.error.details?.field]).toEqual([400, 'Upgrade']);
    const other = await upgraded('/sandbox', 'h2c');
    expect(other).toBe(200);
    expect(await upgraded('/sandbox', 'websocket')).toBe(200);
    expect(await upgraded('/nowhere', 'websocket')).toBe(404);
  });

  /** The status of a request that asks for another protocol. */
  function upgraded(path: string, upgrade: string): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const headers = { ...daemon.authorization, connection: 'Upgrade', upgrade };
      const sent = request(`${daemon.url}${path}`, { headers, agent: false });
      sent
        .on('response', (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end();
    });
  }
});
