import { createHash } from 'node:crypto';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { LocalDaemon } from '../../support/daemon/local-daemon.ts';
import { eventually } from '../../support/eventually.ts';

let daemon: LocalDaemon;

beforeEach(async () => {
  daemon = await LocalDaemon.start();
});

/** A request whose body is written bit by bit. */
function upload(path: string): { sent: ClientRequest; answered: Promise<IncomingMessage> } {
  const headers = { ...daemon.authorization, 'content-type': 'application/octet-stream' };
  const sent = request(`${daemon.url}${path}`, { method: 'POST', headers, agent: false });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    sent.on('response', resolve).on('error', reject);
  });
  answered.catch(() => {});
  return { sent, answered };
}

describe('POST /processes/{id}/stdin', () => {
  it('accepts raw bytes of any type and length, and closes stdin at the end', async () => {
    const { process_id } = await daemon.run({ command: ['sha256sum'], stdin: 'pipe' });
    const body = Buffer.alloc(30_000_000, 'any length ');
    const path = `/processes/${process_id}/stdin`;
    expect(await daemon.ask(path, { body })).toMatchObject({ status: 204, text: '' });
    for (const type of ['application/json', 'text/plain', 'multipart/form-data']) {
      const headers = { 'content-type': type };
      expect((await daemon.ask(path, { body: '{not json', headers })).status, type).toBe(204);
    }
    expect((await daemon.ask(`${path}?end=true`, { method: 'POST' })).status).toBe(204);
    expect(await daemon.ended(process_id)).toMatchObject({ exit_code: 0 });
    const hash = createHash('sha256').update(body).update('{not json'.repeat(3)).digest('hex');
    expect((await daemon.output(process_id)).toString()).toBe(`${hash}  -\n`);
  });

  it('waits while the pipe is full, and the process receives every byte', async () => {
    const { process_id } = await daemon.run({
      shell: 'trap : USR1; echo trapped; sleep 1000 & wait; exec wc -c',
      stdin: 'pipe',
      ready: { log: 'trapped' },
    });
    await daemon.ask(`/processes/${process_id}/wait?for=ready&timeout_ms=30000`);
    const { sent, answered } = upload(`/processes/${process_id}/stdin?end=1`);
    const block = Buffer.alloc(1_000_000);
    // Until neither the pipe nor the connection takes any more.
    while (sent.write(block));
    const answer = vi.fn();
    void answered.then(answer);
    expect((await daemon.ask('/processes')).status).toBe(200);
    expect(answer).not.toHaveBeenCalled();
    await daemon.ask(`/processes/${process_id}/signal`, { json: { signal: 'SIGUSR1', scope: 'leader' } });
    sent.end();
    expect((await answered).statusCode).toBe(204);
    await daemon.ask(`/processes/${process_id}/signal`, { json: { signal: 'SIGTERM' } });
    await daemon.ended(process_id);
    expect((await daemon.output(process_id)).toString()).toMatch(/^trapped\n(\d+\n)?$/);
  });

  it('can be repeated after a lost connection: accepted bytes are skipped, and a gap is refused', async () => {
    const { process_id } = await daemon.run({ command: ['cat'], stdin: 'pipe' });
    const path = `/processes/${process_id}/stdin`;
    const { sent } = upload(`${path}?offset=0`);
    sent.write('hello ');
    await eventually(
      async () => {
        const gap = await daemon
          .ask(`${path}?offset=100`, { body: 'x', signal: AbortSignal.timeout(1_000) })
          .catch(() => null);
        sent.destroy();
        expect(gap?.error).toMatchObject({ code: 'conflict', details: { accepted: 6 } });
      },
      { timeout: 60_000 },
    );
    expect((await daemon.ask(`${path}?offset=0&end=true`, { body: 'hello world' })).status).toBe(204);
    await daemon.ended(process_id);
    expect((await daemon.output(process_id)).toString()).toBe('hello world');
  });

  it('answers 409 without a pipe, after it was closed, and after the end of the process, whatever the body', async () => {
    const body = Buffer.alloc(5_000_000);
    const without = await daemon.run({ command: ['sleep', '1000'] });
    const closed = await daemon.run({
      shell: 'exec 0<&-; echo closed; exec sleep 1000',
      stdin: 'pipe',
      ready: { log: 'closed' },
    });
    await daemon.ask(`/processes/${closed.process_id}/wait?for=ready`);
    const ended = await daemon.run({ command: ['true'], stdin: 'pipe' });
    await daemon.ended(ended.process_id);
    for (const { process_id } of [without, closed, ended]) {
      const { status, error } = await daemon.ask(`/processes/${process_id}/stdin`, { body });
      expect([status, error.code]).toEqual([409, 'conflict']);
    }
  });

  it('answers 409 when the process ends while the pipe is full', async () => {
    const { process_id } = await daemon.run({ command: ['sleep', '1000'], stdin: 'pipe' });
    const writing = daemon.ask(`/processes/${process_id}/stdin`, { body: Buffer.alloc(5_000_000) });
    await daemon.ask(`/processes/${process_id}/signal`, { json: { signal: 'SIGKILL' } });
    const { status, error } = await writing;
    expect([status, error.code]).toEqual([409, 'conflict']);
  });

  it('refuses an invalid query by its field', async () => {
    const { process_id } = await daemon.run({ command: ['cat'], stdin: 'pipe' });
    for (const [query, field] of [
      ['?end=maybe', 'end'],
      ['?offset=x', 'offset'],
      ['?close=true', 'close'],
    ]) {
      const { status, error } = await daemon.ask(`/processes/${process_id}/stdin${query}`, { body: 'x' });
      expect([status, error.details?.field]).toEqual([400, field]);
    }
  });
});
