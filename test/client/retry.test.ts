import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createDaemonClient, createManagerClient } from '../../src/client/client.ts';
import { SandboxdError } from '../../src/client/error.ts';
import { delayBeforeRetry } from '../../src/client/retry.ts';

interface Seen {
  method: string | undefined;
  key: string | string[] | undefined;
  body: string;
}

type Step = 'cut' | [status: number, code?: string, headers?: Record<string, string>];

/** A server that answers one step after the other, then successes; and what it was asked. */
async function serverOf(...steps: Step[]): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const { method, headers } = request;
    seen.push({ method, key: headers['idempotency-key'], body: await text(request) });
    const step = steps.shift() ?? [200];
    if (step === 'cut') return request.socket.destroy();
    const [status, code, more] = step;
    response.writeHead(status, { 'content-type': 'application/json', ...more });
    const error = { success: false, error: { code, message: 'refused' } };
    return response.end(JSON.stringify(code ? error : { success: true, data: { ok: status } }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

const retry = { backoff_ms: 0 };

describe('a call that fails', () => {
  it('is repeated where the failure may pass', async () => {
    const { url, seen } = await serverOf('cut', [503, 'unavailable', { 'retry-after': '0' }], [502]);
    expect(await createManagerClient({ url, retry }).GET('/healthz')).toEqual({ ok: 200 });
    expect(seen).toHaveLength(4);
  });

  it('is not repeated for ever, nor where another attempt changes nothing', async () => {
    const away = await serverOf('cut', 'cut', 'cut', 'cut', 'cut');
    await expect(createManagerClient({ url: away.url, retry }).GET('/healthz')).rejects.toMatchObject({
      code: 'unreachable',
    });
    expect(away.seen).toHaveLength(4);
    const lasting: Step[] = [
      [503, 'capacity_exhausted'],
      [429, 'quota_exceeded'],
      [500, 'internal_error'],
      [404, 'not_found'],
    ];
    for (const step of lasting) {
      const { url, seen } = await serverOf(step);
      await expect(createManagerClient({ url, retry }).GET('/healthz')).rejects.toMatchObject({
        code: step[1],
      });
      expect(seen).toHaveLength(1);
    }
  });

  it('is a claim or a publish: repeated under one key of its own, or the one that is given', async () => {
    const { url, seen } = await serverOf('cut', [409, 'conflict'], [201]);
    await createManagerClient({ url, retry }).POST('/api/v1/sandboxes', { body: { config: { ttl: 1 } } });
    expect(seen.map(({ body }) => body)).toEqual(Array(3).fill('{"config":{"ttl":1}}'));
    expect(new Set(seen.map(({ key }) => key)).size).toBe(1);
    expect(seen[0]?.key).toMatch(/^[0-9a-f]{32}$/);

    const other = await serverOf('cut', [202]);
    const daemon = createDaemonClient({ url: other.url, retry });
    const headers = { 'Idempotency-Key': 'mine' };
    await daemon.POST('/api/v1/webhook/publish', { body: { payload: {} }, headers });
    expect(other.seen.map(({ key }) => key)).toEqual(['mine', 'mine']);
  });

  it('is not repeated where it would be done twice, or where its body is a stream that is gone', async () => {
    const { url, seen } = await serverOf('cut', 'cut', 'cut', [201]);
    const daemon = createDaemonClient({ url, retry });
    const failed = { code: 'unreachable' };
    const start = (process_id?: string) =>
      daemon.POST('/api/v1/processes', {
        body: { command: ['true'], ...(process_id ? { process_id } : {}) },
      });
    await expect(start()).rejects.toMatchObject(failed);
    const body = new Blob(['content']).stream();
    const query = { path: '/work/file' };
    await expect(daemon.PUT('/api/v1/files', { query, body })).rejects.toMatchObject(failed);
    expect(seen).toHaveLength(2);
    // The same id with the same body is the same process.
    await start('build');
    expect(seen).toHaveLength(4);
  });

  it('ends at once where the caller gives up while it waits', async () => {
    const { url, seen } = await serverOf([503, 'unavailable', { 'retry-after': '30' }]);
    const controller = new AbortController();
    const call = createManagerClient({ url }).GET('/healthz', { signal: controller.signal });
    await expect.poll(() => seen).toHaveLength(1);
    controller.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
  });
});

describe('the wait before a repetition', () => {
  it('doubles, within its bounds, and is never shorter than the server asks for', () => {
    const attempts = fc.integer({ min: 1, max: 20 });
    const asked = fc.option(fc.integer({ min: 0, max: 60_000 }));
    const random = fc.double({ min: 0, max: 1, noNaN: true });
    const policy = { retries: 20, backoff_ms: 250 };
    fc.assert(
      fc.property(attempts, asked, random, (attempt, retry_after_ms, chance) => {
        const error = new SandboxdError({ code: 'unavailable', message: '', status: 503, retry_after_ms });
        const wait_ms = delayBeforeRetry({ error, attempt, has_own_key: false }, policy, chance) ?? -1;
        const longest = Math.min(250 * 2 ** (attempt - 1), 10_000);
        expect(wait_ms).toBeGreaterThanOrEqual(Math.max(retry_after_ms ?? 0, longest / 2));
        expect(wait_ms).toBeLessThanOrEqual(Math.max(retry_after_ms ?? 0, longest));
      }),
    );
  });

  it('is what the server asks for in seconds or as a date, and none where that is long', async () => {
    const date = 'Sun, 22 Nov 2026 10:00:00 GMT';
    const asked: [string, number][] = [
      ['2', 2000],
      ['Sun, 22 Nov 2026 10:00:05 GMT', 5000],
      ['Sun, 22 Nov 2026 09:00:00 GMT', 0],
      ['3600', 3_600_000],
    ];
    for (const [given, retry_after_ms] of asked) {
      const { url } = await serverOf([503, 'outbox_full', { 'retry-after': given, date }]);
      const call = createManagerClient({ url, retry: { retries: 0 } }).GET('/healthz');
      await expect(call).rejects.toMatchObject({ retry_after_ms });
    }
    const { url, seen } = await serverOf([503, 'outbox_full', { 'retry-after': '3600' }]);
    await expect(createManagerClient({ url }).GET('/healthz')).rejects.toMatchObject({ status: 503 });
    expect(seen).toHaveLength(1);
  });
});
