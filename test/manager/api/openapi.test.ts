import { join } from 'node:path';
import { expect, it } from 'vitest';
import { problemOf } from '../../../src/base/schema.ts';
import { PASSED_ROUTES, type PassedRoute } from '../../../src/contract/routes/passed.ts';
import { startDaemon } from '../../support/daemon/running-daemon.ts';
import { dereferenced } from '../../support/dereferenced.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

interface Answer {
  headers: object;
  content?: Record<string, { schema: { anyOf?: object[] } }>;
}

interface Operation {
  operationId: string;
  tags: string[];
  parameters: { name: string }[];
  requestBody?: object;
  responses: Record<string, Answer>;
}

interface Document {
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
}

/** What a caller sends, and what a success answers: the same at the manager and at the daemon. */
function essence({ operationId, tags, parameters, requestBody, responses }: Operation) {
  const successes = Object.entries(responses).filter(([status]) => /^[123]/.test(status));
  return {
    ...{ operationId, tags, requestBody },
    parameters: parameters.filter(({ name }) => name !== 'sandbox_id'),
    successes: successes.map(([status, { content }]) => ({ status, content })),
  };
}

async function documentOf(url: string): Promise<Document> {
  return dereferenced((await (await fetch(`${url}/openapi.json`)).json()) as Document);
}

it('describes the routes that are passed through by the very schemas that the daemon checks', async () => {
  const manager = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`);
  const { call } = await startDaemon('--webhook-url', 'http://127.0.0.1:9/', '--shutdown-grace-ms', '0');
  const daemon = dereferenced(
    (await call('GET', '/openapi.json', { token: null })).json as unknown as Document,
  );
  const { paths, tags } = await documentOf(manager.manager.url);
  for (const { path, from } of Object.values<PassedRoute>(PASSED_ROUTES)) {
    const method = from.method.toLowerCase();
    const passed = paths[path.replaceAll(/:(\w+)/g, '{$1}')]?.[method];
    const own = daemon.paths[from.path.replaceAll(/:(\w+)/g, '{$1}')]?.[method];
    if (!passed || !own) throw new Error(`${method} ${path} is not described`);
    expect(essence(passed), `${method} ${path}`).toEqual(essence(own));
    expect(tags.map(({ name }) => name)).toEqual(expect.arrayContaining(passed.tags));
  }
});

it('names the errors that are answered, with their details and the rate headers', async () => {
  const rate = { dimension: 'api_requests', limit_value: 4, interval_ms: 3_600_000, burst_value: 4 };
  const { manager, client } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, {
    file: { default_team_quotas: [rate] },
  });
  const { paths } = await documentOf(manager.url);
  const team = await client('team_1', 'sandboxes:write');
  const one = '/api/v1/sandboxes/{sandbox_id}';
  const calls: [status: number, method: string, path: string, body?: unknown][] = [
    [400, 'post', '/api/v1/sandboxes', { colour: 'red' }],
    [404, 'get', one],
    [404, 'get', `${one}/processes`],
    [403, 'get', '/api/v1/usage/windows'],
    [429, 'get', one],
  ];
  for (const [expected, method, path, body] of calls) {
    const url = path.replace('{sandbox_id}', 'sbx_00000000-0000-7000-8000-000000000000');
    const { status, headers, error } = await team.call(method.toUpperCase(), url, body);
    const where = `${method} ${path} ${status}`;
    expect(status, where).toBe(expected);
    const answer = paths[path]?.[method]?.responses[status];
    const schema = answer?.content?.['application/json']?.schema ?? { anyOf: [] };
    const named = schema.anyOf ?? [schema];
    const problems = named.map((each) => problemOf(each, { success: false, error }));
    expect(problems, where).toContain(null);
    // Whatever header of these an answer has is one that the document names.
    const told = Object.keys(answer?.headers ?? {}).map((name) => name.toLowerCase());
    const sent = [...headers.keys()].filter((name) => /^x-r|^ratelimit|^retry/.test(name));
    expect(told, where).toEqual(expect.arrayContaining(sent));
    expect(sent, where).toContain('ratelimit');
  }
});
