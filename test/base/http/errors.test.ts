import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createHttpApp } from '../../../src/base/http/app.ts';
import {
  bareAnswer,
  bareResponse,
  clientErrorAnswer,
  unknownMethodAnswer,
} from '../../../src/base/http/errors.ts';
import { ApiError } from '../../../src/contract/errors.ts';

describe('an answer without an application', () => {
  it('is a whole HTTP response, after which the connection ends', async () => {
    const server = createServer((socket) => {
      socket.end(bareResponse(bareAnswer(405, new ApiError('method_not_allowed', 'Grüße'), ['GET', 'PUT'])));
    });
    server.listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    expect(answer.status).toBe(405);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      allow: 'GET, PUT',
      connection: 'close',
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': expect.stringMatching(/^[0-9a-f]{12}$/),
    });
    expect(await answer.json()).toMatchObject({
      success: false,
      error: { code: 'method_not_allowed', message: 'Grüße' },
    });
  });

  it.each([
    ['HPE_HEADER_OVERFLOW', 431, 'invalid_request'],
    ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 413, 'payload_too_large'],
    ['ERR_HTTP_REQUEST_TIMEOUT', 408, 'timeout'],
    ['HPE_INVALID_METHOD', 400, 'invalid_request'],
  ])('says what is wrong with a request that the parser rejects: %s', (code, status, expected) => {
    const answer = clientErrorAnswer(code);
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([status, expected]);
  });

  it('is 405 where the path is known, and 404 elsewhere', () => {
    expect(unknownMethodAnswer('BREW', '/tea', ['GET'])).toMatchObject({
      status: 405,
      headers: { Allow: 'GET' },
    });
    const answer = unknownMethodAnswer('BREW', '/tea?token=secret', []);
    expect(answer).toMatchObject({ status: 404 });
    expect(JSON.parse(answer.text).error.message).toBe('No such route: BREW /tea');
    expect(answer.headers).not.toHaveProperty('Allow');
  });
});

describe('an error of a route', () => {
  function failingApp(error: unknown) {
    const lines: string[] = [];
    const app = createHttpApp(pino({ level: 'error' }, { write: (line) => void lines.push(line) }));
    app.get('/', async () => {
      throw error;
    });
    onTestFinished(() => app.close());
    return { app, lines };
  }

  it('is answered with its code, and not logged', async () => {
    const { app, lines } = failingApp(new ApiError('outbox_full', undefined, { retry_after_s: 7 }));
    const answer = await app.inject({ url: '/', headers: { host: 'h' } });
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '7']);
    expect(answer.json()).toMatchObject({ success: false, error: { code: 'outbox_full' } });
    expect(lines).toEqual([]);
  });

  it('that nobody expected is logged, and tells the client nothing of itself', async () => {
    const { app, lines } = failingApp(new Error('the password is hunter2'));
    const answer = await app.inject({ url: '/', headers: { host: 'h' } });
    expect(answer.statusCode).toBe(500);
    expect(answer.json().error.code).toBe('internal_error');
    expect(answer.body).not.toContain('hunter2');
    expect(JSON.parse(lines.join(''))).toMatchObject({
      reason: 'the password is hunter2',
      request_id: answer.headers['x-request-id'],
    });
  });
});

it('has the same envelope whether an application answers or not', async () => {
  const app = createHttpApp(pino({ level: 'silent' }));
  onTestFinished(() => app.close());
  const answer = await app.inject({ url: '/nowhere', headers: { host: 'h' } });
  expect(answer.json()).toEqual(JSON.parse(unknownMethodAnswer('GET', '/nowhere', []).text));
});
