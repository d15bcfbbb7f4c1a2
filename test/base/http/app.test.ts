import { Type } from 'typebox';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createHttpApp, type HttpApp, success, withStreamedBodies } from '../../../src/base/http/app.ts';
import { createLog } from '../../../src/base/log.ts';
import { BODY_VALUES_MAX } from '../../../src/contract/defaults.ts';
import { ApiError } from '../../../src/contract/errors.ts';
import { closedObject, Flag } from '../../../src/contract/field.ts';

async function served(add: (app: HttpApp) => void | Promise<void>) {
  const app = createHttpApp(createLog('silent'));
  onTestFinished(() => app.close());
  await add(app);
  await app.ready();
  return async (method: 'GET' | 'POST' | 'PUT', url: string, body?: string | Buffer, type = JSON_TYPE) => {
    const { statusCode, headers, payload } = await app.inject({
      method,
      url,
      headers: { host: 'localhost', ...(body === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined ? {} : { payload: body }),
    });
    return { status: statusCode, headers, json: payload === '' ? null : JSON.parse(payload) };
  };
}

const JSON_TYPE = 'application/json';
const Body = closedObject({ name: Type.String(), inner: Type.Optional(closedObject({ n: Type.Integer() })) });

const echo = () =>
  served((app) => {
    app.post('/echo', { schema: { body: Body } }, async (request) => success(request.body));
    app.post(
      '/optional',
      { schema: { body: closedObject({ a: Type.Optional(Type.String()) }) } },
      async (r) => success(r.body ?? null),
    );
    app.get('/flags', { schema: { querystring: closedObject({ on: Flag }) } }, async (r) => success(r.query));
    app.get('/broken', async () => {
      throw new Error('a secret of the program');
    });
    app.get('/full', async () => {
      throw new ApiError('outbox_full', undefined, { retry_after_s: 7 });
    });
  });

describe('an application', () => {
  it('gives handlers what matches the schema of the route', async () => {
    const call = await echo();
    const body = { name: 'a', inner: { n: 1 } };
    expect((await call('POST', '/echo', JSON.stringify(body))).json).toEqual({ success: true, data: body });
    expect((await call('GET', '/flags?on')).json.data).toEqual({ on: true });
    expect((await call('GET', '/flags')).json.data).toEqual({ on: false });
  });

  it.each([
    ['{}', 'name: is required'],
    ['{"name":1}', 'name: must be a string'],
    ['{"name":"a","colour":1}', 'colour: unknown field'],
    ['{"name":"a","inner":{"n":0.5}}', 'inner.n: must be an integer'],
    ['[]', 'body: must be an object'],
    ['5', 'body: must be an object'],
    ['null', 'body: must be an object'],
    ['', 'body: is required'],
    ['{', 'body: must be JSON'],
  ])('refuses the body %s: %s', async (body, message) => {
    const call = await echo();
    const { status, json } = await call('POST', '/echo', body);
    expect([status, json]).toEqual([
      400,
      {
        success: false,
        error: { code: 'invalid_request', message, details: { field: message.split(':')[0] } },
      },
    ]);
  });

  it.each([
    ['many', '"",'.repeat(BODY_VALUES_MAX)],
    ['deep', `${'['.repeat(100_000)}${']'.repeat(100_000)},`],
    ['full of short lists', '[""],'.repeat(BODY_VALUES_MAX / 2)],
  ])(
    'refuses a body with more values than are checked, by the field that holds them: %s',
    async (_, values) => {
      const call = await echo();
      const { status, json } = await call('POST', '/echo', `{"name":"a","inner":[${values}1]}`);
      const message = `inner: holds more than ${BODY_VALUES_MAX} values`;
      expect([status, json.error]).toEqual([
        400,
        { code: 'invalid_request', message, details: { field: 'inner' } },
      ]);
    },
  );

  it('refuses a body that is not UTF-8, or of another type', async () => {
    const call = await echo();
    const bytes = Buffer.from([0x22, 0xff, 0x22]);
    expect((await call('POST', '/echo', bytes)).json.error.message).toBe('body: must be UTF-8');
    expect((await call('POST', '/echo', 'a=b', 'text/plain')).status).toBe(415);
  });

  it('takes no packed body, and no part of one, but for another server', async () => {
    const app = createHttpApp(createLog('silent'));
    onTestFinished(() => app.close());
    const answer = async () => success(null);
    app.post('/json', answer);
    await withStreamedBodies(app, async (streamed) => {
      streamed.put('/bytes', answer);
      streamed.put('/passed', { config: { is_passed_on: true } }, answer);
    });
    const statusOf = async (method: 'POST' | 'PUT', url: string, header: Record<string, string>) => {
      const headers = { host: 'localhost', 'content-type': JSON_TYPE, ...header };
      const { statusCode, payload } = await app.inject({ method, url, headers, payload: '{}' });
      return [statusCode, JSON.parse(payload).error?.code];
    };
    const packed = { 'content-encoding': 'gzip' };
    const part = { 'content-range': 'bytes 5-9/10' };
    for (const [method, url] of [
      ['POST', '/json'],
      ['PUT', '/bytes'],
    ] as const)
      expect(await statusOf(method, url, packed)).toEqual([415, 'unsupported_media_type']);
    expect(await statusOf('PUT', '/bytes', part)).toEqual([400, 'invalid_request']);
    expect(await statusOf('PUT', '/bytes', { 'content-encoding': 'Identity' })).toEqual([200, undefined]);
    for (const header of [packed, part])
      expect(await statusOf('PUT', '/passed', header)).toEqual([200, undefined]);
    expect(await statusOf('PUT', '/nowhere', packed)).toEqual([404, 'not_found']);
  });

  it('takes an empty body where every field is optional', async () => {
    const call = await echo();
    expect((await call('POST', '/optional', '')).json.data).toBeNull();
    expect((await call('POST', '/optional')).json.data).toBeNull();
    expect((await call('POST', '/optional', 'null')).status).toBe(400);
  });

  it('names an unknown parameter of a query', async () => {
    const call = await echo();
    const { status, json } = await call('GET', '/flags?off');
    expect([status, json.error.message]).toEqual([400, 'off: unknown query parameter']);
  });

  it('says nothing of an error that it does not know, and when to come again for one that it knows', async () => {
    const call = await echo();
    const broken = await call('GET', '/broken');
    expect([broken.status, broken.json.error.code]).toEqual([500, 'internal_error']);
    expect(JSON.stringify(broken.json)).not.toContain('secret');
    expect((await call('GET', '/full')).headers['retry-after']).toBe('7');
  });

  it('answers a method that a path does not allow with those that it does', async () => {
    const call = await echo();
    const { status, headers } = await call('PUT', '/echo');
    expect([status, headers.allow]).toEqual([405, 'POST']);
    expect((await call('GET', '/nowhere')).json.error.code).toBe('not_found');
  });

  it('gives each request an id of its own', async () => {
    const call = await echo();
    const ids = [await call('GET', '/flags'), await call('GET', '/nowhere')].map(
      ({ headers }) => headers['x-request-id'],
    );
    expect(new Set(ids).size).toBe(2);
  });

  it('leaves bodies of any type to routes that read them by themselves', async () => {
    const call = await served((app) =>
      withStreamedBodies(app, async (streamed) => {
        streamed.post('/stream', async (request) => {
          let length = 0;
          for await (const piece of request.raw) length += piece.length;
          return success(length);
        });
      }),
    );
    expect((await call('POST', '/stream', 'xyz', 'text/odd')).json.data).toBe(3);
  });
});
