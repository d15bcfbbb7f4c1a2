import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createHttpApp } from '../../../src/base/http/app.ts';
import { createLog } from '../../../src/base/log.ts';
import { problemOf } from '../../../src/base/schema.ts';
import { EVENT_TYPES } from '../../../src/contract/events.ts';
import { DAEMON_ROUTES } from '../../../src/contract/routes/daemon.ts';
import { registerDaemonRoutes } from '../../../src/daemon/api/app.ts';
import { startDaemon } from '../../support/daemon/running-daemon.ts';
import { dereferenced } from '../../support/dereferenced.ts';

interface Operation {
  summary: string;
  security: object[];
  parameters: { in: string; name: string; required: boolean; schema: object }[];
  requestBody?: { required: boolean; content: Record<string, { schema: { properties: object } }> };
  responses: Record<string, { content?: Record<string, { schema?: object }> }>;
}

interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<
    string,
    { post: { requestBody: { content: { 'application/json': { schema: object } } } } }
  >;
}

const ROWS = Object.values(DAEMON_ROUTES);

/** Nobody listens there. */
const NOBODY = 'http://127.0.0.1:9/';

async function documentOf(): Promise<Document> {
  const { call } = await startDaemon('--webhook-url', NOBODY, '--shutdown-grace-ms', '0');
  const { status, json } = await call('GET', '/openapi.json', { token: null });
  expect(status).toBe(200);
  return dereferenced(json as unknown as Document);
}

describe("the daemon's document", () => {
  it('describes every route that the daemon serves, and needs no token', async () => {
    const app = createHttpApp(createLog('silent'));
    const served: string[] = [];
    app.addHook('onRoute', ({ method, url }) => {
      for (const each of [method].flat()) {
        served.push(`${each.toLowerCase()} ${url.replaceAll(/:(\w+)/g, '{$1}')}`);
      }
    });
    await registerDaemonRoutes(app, {} as never);
    await app.close();
    const { openapi, paths } = await documentOf();
    expect(openapi).toBe('3.1.0');
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    );
    expect(described.sort()).toEqual(served.sort());
    expect(described).toContain('get /openapi.json');
  });

  it('names the errors of file operations by their statuses', async () => {
    const { paths } = await documentOf();
    const described = (path: string, method: string) =>
      Object.entries(paths[path]?.[method]?.responses ?? {}).map(([status, answer]) => [
        status,
        (answer as { description: string }).description,
      ]);
    expect(described('/api/v1/files', 'get')).toEqual([
      ['200', 'success'],
      ['206', 'the range that was asked for'],
      ['304', 'the caller has this version already'],
      ['400', 'invalid_request'],
      ['401', 'unauthorized'],
      ['403', 'permission_denied, forbidden'],
      ['404', 'not_found'],
      ['409', 'not_a_directory, is_a_directory, not_a_file'],
      ['412', 'precondition_failed'],
      ['416', 'range_not_satisfiable'],
      ['429', 'too_many_requests'],
      ['500', 'internal_error'],
      ['503', 'outbox_unavailable'],
      ['default', 'any other error'],
    ]);
    for (const path of Object.keys(paths).filter((each) => each.startsWith('/api/v1/files')))
      for (const method of Object.keys(paths[path] ?? {}))
        expect(Object.fromEntries(described(path, method))).toMatchObject({ 400: 'invalid_request' });
  });

  it('says of each route what it is for, its parameters, and whether it needs a token', async () => {
    const { paths } = await documentOf();
    for (const [path, methods] of Object.entries(paths)) {
      for (const [method, { summary, parameters, security, responses }] of Object.entries(methods)) {
        const where = `${method} ${path}`;
        expect(summary, where).toMatch(/./);
        for (const [, name] of path.matchAll(/\{(\w+)\}/g)) {
          expect(parameters, where).toContainEqual(expect.objectContaining({ in: 'path', name }));
        }
        const served = path.replaceAll(/\{(\w+)\}/g, ':$1');
        const { access } =
          ROWS.find((row) => row.method === method.toUpperCase() && row.path === served) ?? {};
        expect(security.length === 0, where).toBe(access === 'health' || access === 'open');
        expect(Object.keys(responses), where).toContain('default');
      }
    }
  });

  it('shows the very schemas that requests are checked by', async () => {
    const { paths } = await documentOf();
    const list = paths['/api/v1/webhook/deliveries']?.get?.parameters ?? [];
    expect(list.map(({ name, required }) => [name, required])).toEqual([
      ['state', false],
      ['event_type', false],
      ['limit', false],
      ['cursor', false],
    ]);
    expect(list[2]?.schema).toMatchObject({ type: 'integer', minimum: 1, default: 100 });
    const start = paths['/api/v1/processes']?.post?.requestBody?.content['application/json']?.schema;
    expect(start?.properties).toMatchObject({
      process_id: { type: 'string' },
      restart: { properties: { policy: { enum: ['never', 'on-failure', 'always'] } } },
    });
    const publish = paths['/api/v1/webhook/publish']?.post;
    expect(publish?.requestBody).toMatchObject({ required: true });
    expect(Object.keys(publish?.responses ?? {})).toEqual(
      expect.arrayContaining(['202', '409', '413', '415', '503', 'default']),
    );
    const output = paths['/api/v1/processes/{process_id}/output']?.get?.responses['200'];
    expect(Object.keys(output?.content ?? {})).toEqual(['text/event-stream']);
  });

  it('has schemas that the answers match', async () => {
    const { call, publish } = await startDaemon('--webhook-url', NOBODY, '--shutdown-grace-ms', '0');
    const { paths } = dereferenced((await call('GET', '/openapi.json')).json as unknown as Document);
    const { event_id } = (await publish('{}')).json.data;
    const query = '?wait_ms=60000';
    const body = '{"process_id":"p","command":["true"]}';
    const answers = [
      ['post', '/api/v1/processes', await call('POST', `/api/v1/processes${query}`, { body })],
      ['get', '/api/v1/processes', await call('GET', '/api/v1/processes')],
      ['get', '/api/v1/processes/{process_id}', await call('GET', '/api/v1/processes/p')],
      ['get', '/api/v1/webhook/deliveries', await call('GET', '/api/v1/webhook/deliveries')],
      [
        'get',
        '/api/v1/webhook/deliveries/{event_id}',
        await call('GET', `/api/v1/webhook/deliveries/${event_id}`),
      ],
      ['get', '/api/v1/sandbox', await call('GET', '/api/v1/sandbox')],
      ['post', '/api/v1/sandbox/pause', await call('POST', '/api/v1/sandbox/pause')],
    ] as const;
    for (const [method, path, { status, json }] of answers) {
      const schema = paths[path]?.[method]?.responses[status]?.content?.['application/json']?.schema;
      expect(problemOf(schema ?? { not: {} }, json), `${method} ${path}`).toBeNull();
    }
  });

  it('has a schema of each event, which the golden bodies match', async () => {
    const { webhooks } = await documentOf();
    expect(Object.keys(webhooks)).toEqual([...EVENT_TYPES]);
    for (const type of EVENT_TYPES) {
      const path = `${import.meta.dirname}/../../../fixtures/events/${type}.body`;
      const body = JSON.parse(readFileSync(path, 'utf8'));
      const schema = webhooks[type]?.post.requestBody.content['application/json'].schema ?? { not: {} };
      expect(problemOf(schema, body), type).toBeNull();
      expect(problemOf(schema, { ...body, payload: 5 }), type).toMatchObject({ field: 'payload' });
      expect(problemOf(schema, { ...body, colour: 'red' }), type).toEqual({
        field: 'colour',
        problem: 'unknown field',
      });
    }
  });
});
