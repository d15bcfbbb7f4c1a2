import { createHash } from 'node:crypto';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { SandboxdError } from '../../../src/client/error.ts';
import { serverEvents } from '../../../src/client/streams/server-events.ts';
import type { ServerSentEvent } from '../../../src/contract/server-sent-events.ts';
import { NodeAnswer } from '../../../src/ctl/api/node-answer.ts';
import { Supervisor } from '../../../src/process/supervisor.ts';
import { LocalDaemon } from '../../support/daemon/local-daemon.ts';
import { eventually } from '../../support/eventually.ts';

let daemon: LocalDaemon;

beforeEach(async () => {
  daemon = await LocalDaemon.start();
});

interface Stream {
  sent: ClientRequest;
  body: IncomingMessage;
  events: AsyncGenerator<ServerSentEvent>;
}

/** Opens the output as server-sent events. */
function open(process_id: string, query = '', headers: Record<string, string> = {}): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const url = `${daemon.url}/processes/${process_id}/output${query}`;
    const sent = request(url, { headers: { ...daemon.authorization, ...headers }, agent: false });
    sent.on('error', reject).end();
    sent.on('response', (body) =>
      resolve({ sent, body, events: serverEvents(new NodeAnswer(body, undefined)) }),
    );
  });
}

/** Every event of an output that ends, as [event, data]. */
async function all(
  process_id: string,
  query = '',
  headers = {},
): Promise<[string, Record<string, unknown>][]> {
  const { events } = await open(process_id, query, headers);
  const list: [string, Record<string, unknown>][] = [];
  for await (const { event, data } of events) list.push([event, JSON.parse(data)]);
  return list;
}

const text = (events: [string, Record<string, unknown>][]) =>
  events.flatMap(([event, { data }]) => (event === 'output' ? [data] : [])).join('');

describe('GET /processes/{id}/output as server-sent events', () => {
  it('replays both streams with their offsets, and ends with the exit', async () => {
    const process = await daemon.run({ shell: 'echo one; echo two >&2; exit 4' }, '?wait_ms=30000');
    const { output: _, ...view } = process;
    expect(await all(process.process_id)).toEqual([
      ['output', { stream: 'stdout', offset: 0, data: 'one\n' }],
      ['output', { stream: 'stderr', offset: 0, data: 'two\n' }],
      ['exit', view],
    ]);
  });

  it('sends the present output of a running process and no exit, without follow', async () => {
    const { process_id } = await daemon.run({
      shell: 'echo up; exec sleep 1000',
      ready: { log: 'up' },
    });
    await daemon.ask(`/processes/${process_id}/wait?for=ready`);
    await eventually(async () => {
      expect(await all(process_id, '?follow=false')).toEqual([
        ['output', { stream: 'stdout', offset: 0, data: 'up\n' }],
      ]);
    });
  });

  it('follows the output as it is written, until the process ends', async () => {
    const { process_id } = await daemon.run({ command: ['cat'], stdin: 'pipe' });
    const { events } = await open(process_id, '?follow');
    for (const line of ['a\n', 'b\n']) {
      await daemon.ask(`/processes/${process_id}/stdin`, { body: line });
      expect(JSON.parse((await events.next()).value.data).data).toBe(line);
    }
    await daemon.ask(`/processes/${process_id}/stdin?end=true`, { method: 'POST' });
    expect((await events.next()).value.event).toBe('exit');
    expect((await events.next()).done).toBe(true);
  });

  it('starts at an offset, a number of bytes or lines before the end, or after an event', async () => {
    const { process_id } = await daemon.run(
      { shell: 'printf "a\\nbb\\nccc\\n"; printf "E\\n" >&2' },
      '?wait_ms=30000',
    );
    expect(text(await all(process_id, '?stream=stdout&offset=2'))).toBe('bb\nccc\n');
    expect(text(await all(process_id, '?stream=stdout&offset=9'))).toBe('');
    expect(text(await all(process_id, '?stream=stdout&tail_bytes=4'))).toBe('ccc\n');
    expect(text(await all(process_id, '?stream=stdout&tail_lines=2'))).toBe('bb\nccc\n');
    expect(text(await all(process_id, '?tail_lines=1'))).toBe('ccc\nE\n');
    expect(text(await all(process_id, '?stream=stderr'))).toBe('E\n');
    expect(text(await all(process_id, '?stream=all&offset=5'))).toBe('ccc\n');
    const { events } = await open(process_id, '?offset=0');
    const first = (await events.next()).value;
    // As a browser does it: the query again, and the id of the last event.
    expect(text(await all(process_id, '?offset=0', { 'last-event-id': first.id }))).toBe('E\n');
  });

  it('sends bytes that are not text as base64, and never splits a character', async () => {
    const { process_id } = await daemon.run({ command: ['cat'], stdin: 'pipe' });
    const { events } = await open(process_id, '?follow=true');
    await daemon.ask(`/processes/${process_id}/stdin`, { body: Buffer.from('x\xc3', 'latin1') });
    expect(JSON.parse((await events.next()).value.data)).toMatchObject({ offset: 0, data: 'x' });
    await daemon.ask(`/processes/${process_id}/stdin`, { body: Buffer.from('\xa9', 'latin1') });
    expect(JSON.parse((await events.next()).value.data)).toMatchObject({ offset: 1, data: 'é' });
    await daemon.ask(`/processes/${process_id}/stdin?end=true`, { body: Buffer.from([0xff, 0x0a]) });
    expect(JSON.parse((await events.next()).value.data)).toEqual({
      stream: 'stdout',
      offset: 3,
      data: '/wo=',
      encoding: 'base64',
    });
  });

  it.each([
    ['zeros as base64, which is shorter', '\\0', 'base64'],
    ['colours as text', '\\33[31mx\\33[0m', undefined],
    ['empty lines as text', '\\n', undefined],
  ])('sends a long piece of %s', async (_, piece, encoding) => {
    const shell = `printf '${piece}%.0s' $(seq 3000)`;
    const { process_id, output } = await daemon.run({ shell }, '?wait_ms=60000');
    const events = (await all(process_id)).filter(([event]) => event === 'output').map(([, data]) => data);
    expect(new Set(events.map((data) => data.encoding))).toEqual(new Set([encoding]));
    const bytes = events.map(({ data }) => Buffer.from(data as string, encoding as BufferEncoding));
    expect(Buffer.concat(bytes).toString()).toBe(output.stdout);
  });

  it('refuses an offset that is no longer kept with 410, and one beyond the end with 400', async () => {
    const { process_id } = await daemon.run(
      {
        command: [process.execPath, 'fixtures/programs/flood.mjs', String(20 * 2 ** 20)],
        cwd: process.cwd(),
      },
      '?wait_ms=60000',
    );
    const gone = await daemon.ask(`/processes/${process_id}/output?stream=stdout&offset=0`);
    expect([gone.status, gone.error.code]).toEqual([410, 'gone']);
    const first = gone.error.details?.first_offset as number;
    expect(first).toBeLessThanOrEqual(12 * 2 ** 20);
    const from = await all(process_id, `?stream=stdout&offset=${first}`);
    expect(from[0]?.[1]).toMatchObject({ offset: first });
    const resumed = await daemon.ask(`/processes/${process_id}/output`, {
      headers: { 'last-event-id': '0-0' },
    });
    expect(resumed.status).toBe(410);
    const beyond = await daemon.ask(
      `/processes/${process_id}/output?stream=stdout&offset=${20 * 2 ** 20 + 1}`,
    );
    expect([beyond.status, beyond.error.details?.field]).toEqual([400, 'offset']);
  });

  it('tells a follower that was overtaken where the output continues', async () => {
    const { process_id } = await daemon.run({ command: ['cat'], stdin: 'pipe' });
    const { body, events } = await open(process_id, '?stream=stdout&follow=true');
    body.pause();
    await daemon.ask(`/processes/${process_id}/stdin?end=true`, { body: Buffer.alloc(40 * 2 ** 20, 'x') });
    expect(await daemon.ended(process_id)).toMatchObject({ exit_code: 0 });
    let next = 0;
    let gone = 0;
    for await (const { event, data } of events) {
      const { offset, data: piece } = JSON.parse(data);
      if (event === 'gone') {
        expect(offset).toBeGreaterThan(next);
        gone += 1;
        next = offset;
      } else if (event === 'output') {
        expect(offset).toBe(next);
        next += piece.length;
      } else expect(event).toBe('exit');
    }
    expect(gone).toBeGreaterThan(0);
    expect(next).toBe(40 * 2 ** 20);
  });

  it('lets a client that loses its connection a hundred times receive 20 MB byte for byte', async () => {
    const TOTAL_BYTES = 20_000_000;
    const { process_id } = await daemon.run({ command: ['cat'], stdin: 'pipe' });
    const sent = createHash('sha256');
    const received = createHash('sha256');
    let received_bytes = 0;
    let progress = Promise.withResolvers<void>();

    async function write(): Promise<void> {
      // Not more ahead than what is kept, so that nothing is gone for a reader that is away.
      const block = Buffer.alloc(500_000);
      for (let written = 0; written < TOTAL_BYTES; written += block.length) {
        while (written - received_bytes > 4_000_000) await progress.promise;
        for (let i = 0; i < block.length; i += 4)
          block.writeUInt32LE(((written + i) * 2_654_435_761) >>> 0, i);
        sent.update(block);
        await daemon.ask(`/processes/${process_id}/stdin?offset=${written}`, { body: block });
      }
      await daemon.ask(`/processes/${process_id}/stdin?end=true`, { method: 'POST' });
    }

    /** Reads until `limit` bytes of this connection have come, then cuts it in the middle of whatever comes. */
    async function readUntilDropped(
      last_id: string | null,
      limit: number,
    ): Promise<[string | null, boolean]> {
      const headers: Record<string, string> = last_id === null ? {} : { 'last-event-id': last_id };
      const { body, events } = await open(process_id, '?follow=true', headers);
      let seen_bytes = 0;
      body.on('data', (chunk: Buffer) => {
        seen_bytes += chunk.length;
        if (seen_bytes > limit) body.destroy();
      });
      let id = last_id;
      try {
        for await (const each of events) {
          if (each.event === 'exit') return [id, true];
          const { offset, data, encoding } = JSON.parse(each.data);
          expect([each.event, offset]).toEqual(['output', received_bytes]);
          const bytes = Buffer.from(data, encoding);
          received.update(bytes);
          received_bytes += bytes.length;
          id = each.id;
          progress.resolve();
          progress = Promise.withResolvers();
        }
      } catch (error) {
        if ((error as SandboxdError).code !== 'unreachable') throw error;
      }
      return [id, false];
    }

    const writing = write();
    let drops = 0;
    for (let id: string | null = null, is_ended = false; !is_ended; ) {
      [id, is_ended] = await readUntilDropped(
        id,
        drops < 100 ? 100_000 + ((drops * 7_919) % 150_000) : Infinity,
      );
      if (!is_ended) drops += 1;
    }
    await writing;
    expect([drops, received_bytes]).toEqual([100, TOTAL_BYTES]);
    expect(received.digest('hex')).toBe(sent.digest('hex'));
  });

  it('stops reading when the client has disconnected', async () => {
    const { process_id } = await daemon.run({ command: ['cat'], stdin: 'pipe' });
    const read = vi.spyOn(Supervisor.prototype, 'output');
    onTestFinished(() => read.mockRestore());
    const { sent } = await open(process_id, '?follow=true');
    const items = await read.mock.results[0]?.value;
    const ended = eventually(async () => expect((await items.next()).done).toBe(true));
    sent.destroy();
    await ended;
  });
});

describe('GET /processes/{id}/output as bytes', () => {
  const accept = { accept: 'application/octet-stream' };

  it('sends one stream unchanged, with the offset of its first byte', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    const { process_id } = await daemon.run({ command: ['cat'], stdin: 'pipe' });
    await daemon.ask(`/processes/${process_id}/stdin?end=true`, { body: bytes });
    expect((await daemon.output(process_id)).equals(bytes)).toBe(true);
    const path = `/processes/${process_id}/output?stream=stdout`;
    const { headers, text } = await daemon.ask(`${path}&tail_bytes=3&follow=true`, { headers: accept });
    expect(headers.get('x-output-offset')).toBe('253');
    expect(headers.get('content-type')).toBe('application/octet-stream');
    expect(text).toBe(bytes.subarray(253).toString());
    const empty = await daemon.ask(`/processes/${process_id}/output?stream=stderr`, { headers: accept });
    expect([empty.status, empty.text, empty.headers.get('x-output-offset')]).toEqual([200, '', '0']);
  });

  it('refuses more than one stream', async () => {
    const { process_id } = await daemon.run({ command: ['true'] });
    for (const query of ['', '?stream=all']) {
      const { status, error } = await daemon.ask(`/processes/${process_id}/output${query}`, {
        headers: accept,
      });
      expect([status, error.details?.field]).toEqual([400, 'stream']);
    }
  });

  it('cuts the answer off where bytes are missing in the middle', async () => {
    const { process_id } = await daemon.run({ command: ['cat'], stdin: 'pipe' });
    const { body } = await open(process_id, '?stream=stdout&follow=true', accept);
    body.pause();
    await daemon.ask(`/processes/${process_id}/stdin?end=true`, { body: Buffer.alloc(40 * 2 ** 20, 'x') });
    await daemon.ended(process_id);
    await expect(body.toArray()).rejects.toThrow(/aborted/);
  });
});

describe('a lossless follower', () => {
  const TOTAL_BYTES = 40 * 2 ** 20;
  const flood = { command: ['head', '-c', String(TOTAL_BYTES), '/dev/zero'] };

  it('receives every byte of a process that writes faster than it reads, in either form', async () => {
    const query = '?stream=stdout&follow&lossless';
    for (const accept of ['application/octet-stream', 'text/event-stream']) {
      const { process_id } = await daemon.run(flood, '?lossless=true');
      const { body, events } = await open(process_id, query, { accept });
      // Nothing is read until no more comes: what the connection holds is full, and so is the pipe.
      body.pause();
      await daemon.ask(`/processes/${process_id}/wait?timeout_ms=300`);
      expect((await daemon.ask(`/processes/${process_id}`)).data.state).toBe('running');
      let bytes = 0;
      if (accept.endsWith('octet-stream')) for await (const chunk of body) bytes += chunk.length;
      else {
        for await (const { event, data } of events) {
          expect(event).not.toBe('gone');
          if (event !== 'output') continue;
          const piece = JSON.parse(data);
          bytes += Buffer.byteLength(piece.data, piece.encoding);
        }
      }
      expect(bytes).toBe(TOTAL_BYTES);
    }
  });

  it('holds nothing any more once its connection is lost', async () => {
    const { process_id } = await daemon.run(flood, '?lossless=true');
    const { sent, body } = await open(process_id, '?follow&lossless');
    body.pause();
    sent.destroy();
    expect(await daemon.ended(process_id)).toMatchObject({ exit_code: 0 });
  });

  it('is not waited for by a start that waits for the end itself', async () => {
    const { status, error } = await daemon.ask('/processes?lossless=true&wait_ms=1', { json: flood });
    expect([status, error.details?.field]).toEqual([400, 'lossless']);
  });

  it('loses its connection when it is dropped', async () => {
    const { process_id } = await daemon.run(flood, '?lossless=true');
    const read = vi.spyOn(Supervisor.prototype, 'output');
    onTestFinished(() => read.mockRestore());
    for (const accept of ['application/octet-stream', 'text/event-stream']) {
      const { body } = await open(process_id, '?stream=stdout&follow&lossless', { accept });
      read.mock.lastCall?.[1].onDropped?.();
      await expect(body.toArray()).rejects.toThrow(/aborted/);
    }
  });

  it('holds up neither DELETE nor the end of the daemon', async () => {
    const { process_id } = await daemon.run({ command: ['yes'] }, '?lossless=true');
    const { body } = await open(process_id, '?follow&lossless');
    body.pause().on('error', () => {});
    const { data } = await daemon.ask(`/processes/${process_id}?grace_ms=600000`, { method: 'DELETE' });
    expect(data).toMatchObject({ state: 'exited', signal: 'SIGTERM' });
    const other = await daemon.run({ command: ['yes'] }, '?lossless=true');
    const { body: unread } = await open(other.process_id, '?follow&lossless');
    unread.pause().on('error', () => {});
    await daemon.daemon.stop('signal', 'SIGTERM');
  });
});

describe('an invalid request for output', () => {
  it('is refused by its field', async () => {
    const { process_id } = await daemon.run({ command: ['true'] });
    for (const [query, field] of [
      ['?stream=stdin', 'stream'],
      ['?offset=-1', 'offset'],
      ['?offset=1e3', 'offset'],
      ['?offset=0&tail_lines=1', 'tail_lines'],
      ['?tail_bytes=all', 'tail_bytes'],
      ['?tail_lines=', 'tail_lines'],
      ['?follow=yes', 'follow'],
      ['?lossless', 'lossless'],
      ['?from=0', 'from'],
    ]) {
      const { status, error } = await daemon.ask(`/processes/${process_id}/output${query}`);
      expect([status, error.code, error.details?.field], query).toEqual([400, 'invalid_request', field]);
    }
    const headers = { 'last-event-id': 'seven' };
    const { status, error } = await daemon.ask(`/processes/${process_id}/output`, { headers });
    expect([status, error.details?.field]).toEqual([400, 'Last-Event-ID']);
  });
});
