import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createDaemonClient, createManagerClient, type SandboxdError } from '../../src/client/client.ts';

/** A server that answers one step after the other, the last one again and again; and what it was sent. */
async function serverOf(...steps: ((response: ServerResponse) => void)[]) {
  const seen: { url: string | undefined; body: string }[] = [];
  const server = createServer(async (request, response) => {
    const { url } = request;
    seen.push({ url, body: (await request.toArray()).join('') });
    (steps.length > 1 ? steps.shift() : steps[0])?.(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

const JSON_TYPE = { 'content-type': 'application/json' };
const json = (status: number, data: object) => (response: ServerResponse) =>
  void response.writeHead(status, JSON_TYPE).end(JSON.stringify({ success: true, data }));
const cut = (response: ServerResponse) => void response.destroy();
/** Half an answer, then nothing more on a connection that is closed. */
const halved = (response: ServerResponse) => {
  response.writeHead(200, { ...JSON_TYPE, 'content-length': '100' });
  response.write('{"success":', () => response.destroy());
};
const retry = { backoff_ms: 0 };
async function readAll(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}
const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => null,
    (error: SandboxdError) => error,
  );

it('an answer that breaks off is none: the call is repeated where that is safe', async () => {
  const { url, seen } = await serverOf(halved, json(202, { sequence: 1 }));
  const body = { payload: {} };
  expect(await createDaemonClient({ url, retry }).POST('/api/v1/webhook/publish', { body })).toEqual({
    sequence: 1,
  });
  expect(seen).toHaveLength(2);
  const unsafe = await serverOf(halved);
  const start = createDaemonClient({ url: unsafe.url, retry }).POST('/api/v1/processes', {
    body: { command: ['true'] },
  });
  expect(await failureOf(start)).toMatchObject({ code: 'unreachable' });
  expect(unsafe.seen).toHaveLength(1);
});

it('a caller who gives up while an answer arrives is told the reason, not that nobody is there', async () => {
  const controller = new AbortController();
  const { url } = await serverOf((response) => {
    response.writeHead(200, { ...JSON_TYPE, 'content-length': '100' });
    response.write('{"success":', () => controller.abort(new Error('enough')));
  });
  const call = createManagerClient({ url }).GET('/healthz', { signal: controller.signal });
  await expect(call).rejects.toThrow('enough');
});

it('an answer that is no JSON although it says so is a bad answer', async () => {
  const { url, seen } = await serverOf((response) => response.writeHead(200, JSON_TYPE).end('<html>'));
  expect(await failureOf(createManagerClient({ url, retry }).GET('/healthz'))).toMatchObject({
    code: 'bad_answer',
  });
  expect(seen).toHaveLength(1);
});

it('a change under a condition is not made again where it may have been made: it would refuse itself', async () => {
  const query = { path: '/work/lock' };
  for (const [name, value] of [
    ['If-None-Match', '*'],
    ['If-Match', '"1"'],
  ] as const) {
    const headers = { [name]: value };
    const { url, seen } = await serverOf(cut, json(201, {}));
    const call = createDaemonClient({ url, retry }).PUT('/api/v1/files', { query, body: 'mine', headers });
    expect(await failureOf(call)).toMatchObject({ code: 'unreachable' });
    expect(seen).toHaveLength(1);
  }
  const { url, seen } = await serverOf(cut, json(201, {}));
  await createDaemonClient({ url, retry }).PUT('/api/v1/files', { query, body: 'mine' });
  expect(seen).toHaveLength(2);
});

it('a body is made once: what JSON cannot hold is refused unsent, and a later change of it is not sent', async () => {
  const payload: Record<string, unknown> = { step: 1 };
  const { url, seen } = await serverOf(
    (response) => {
      payload.step = 2;
      cut(response);
    },
    json(202, {}),
  );
  const daemon = createDaemonClient({ url, retry });
  await daemon.POST('/api/v1/webhook/publish', { body: { payload } });
  expect(seen.map(({ body }) => body)).toEqual(Array(2).fill('{"payload":{"step":1}}'));
  const huge = daemon.POST('/api/v1/webhook/publish', { body: { payload: { huge: 1n } } });
  expect(await failureOf(huge)).toMatchObject({ code: 'invalid_request', details: { field: 'body' } });
  expect(seen).toHaveLength(2);
});

it('a token that no header can hold is refused without being shown; one from a file may end its line', async () => {
  const { url, seen } = await serverOf(json(200, {}));
  const secret = 'se\ncret-tökén';
  for (const token of [secret, async () => secret]) {
    const error = await failureOf(createManagerClient({ url, token }).GET('/healthz'));
    expect(error).toMatchObject({ code: 'invalid_request', details: { field: 'token' } });
    expect(`${error?.message}${error?.stack}${String(error?.cause)}`).not.toMatch(/cret/);
  }
  expect(seen).toHaveLength(0);
  await createManagerClient({ url, token: 'token\n' }).GET('/healthz');
  expect(seen).toHaveLength(1);
});

it('a list whose pages lead nowhere ends with an error', async () => {
  const pages = [{ entries: [], next_cursor: 'again' }, { entries: null, next_cursor: 'more' }, {}];
  for (const page of pages) {
    const { url, seen } = await serverOf(json(200, page));
    const list = createDaemonClient({ url }).sandbox.files.list('/work');
    expect(await failureOf(readAll(list))).toMatchObject({ code: 'bad_answer' });
    expect(seen.length).toBeLessThanOrEqual(2);
  }
});

it('a stream ends with an error at an id that no header can hold, so that nothing could go on after it', async () => {
  const events = (text: string) => (response: ServerResponse) =>
    void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text);
  const piece = (offset: number) =>
    `event: output\ndata: {"stream":"stdout","offset":${offset},"data":"x"}\n`;
  const { url, seen } = await serverOf(events(`${piece(0)}id: 世\n\n`));
  const output = createDaemonClient({ url }).sandbox.output('p');
  expect(await failureOf(readAll(output))).toMatchObject({ code: 'bad_answer' });
  expect(seen).toHaveLength(1);
});
