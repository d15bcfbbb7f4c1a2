import { join } from 'node:path';
import { expect, it } from 'vitest';
import { problemOf } from '../../../src/base/schema.ts';
import { dereferenced } from '../../support/dereferenced.ts';
import { startScripted } from '../../support/manager/scripted-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

interface Document {
  paths: Record<
    string,
    Record<string, { responses: Record<string, { content?: Record<string, { schema: object }> }> }>
  >;
}

it('the answers of the manager match the schemas of its document', async () => {
  const { manager, client } = await startScripted(`sqlite:${join(scratchFolder(), 'manager.db')}`);
  const { paths } = dereferenced((await (await fetch(`${manager.url}/openapi.json`)).json()) as Document);
  const all = ['sandboxes:write', 'quota:read', 'usage:read', 'webhooks:read', 'admin'] as const;
  const team = await client('team_1', ...all);
  const webhook = {
    url: 'http://127.0.0.1:9/',
    secret: 'a-key',
    watch_dir: '/work',
    watch_ignore: ['*.log'],
  };
  const id = await team.claim({ webhook, env_vars: { A: '1' }, ttl: 60 });
  const one = '/api/v1/sandboxes/{sandbox_id}';
  const quota = '/internal/v1/teams/{team_id}/quotas/{dimension}';
  const calls: [method: string, path: string, body?: unknown][] = [
    ['post', '/api/v1/sandboxes', {}],
    ['get', '/api/v1/sandboxes'],
    ['get', one],
    ['get', `${one}/status`],
    ['put', one, { config: { ttl: 120 } }],
    ['post', `${one}/refresh`],
    ['post', `${one}/pause`],
    ['post', `${one}/fork`],
    ['post', `${one}/resume`],
    ['delete', one],
    ['put', quota, { limit_value: 7 }],
    ['get', '/api/v1/quotas'],
    ['get', '/api/v1/quotas/{dimension}'],
    ['delete', quota],
    ['get', '/api/v1/usage/windows'],
    ['get', '/api/v1/webhooks/deliveries'],
  ];
  for (const [method, path, body] of calls) {
    const url = path
      .replace('{sandbox_id}', id)
      .replace('{team_id}', 'team_1')
      .replace('{dimension}', 'active_sandboxes');
    const { status, data } = await team.call(method.toUpperCase(), url, body);
    const schema = paths[path]?.[method]?.responses[status]?.content?.['application/json']?.schema;
    const where = `${method} ${path} ${status}`;
    expect(problemOf(schema ?? { not: {} }, { success: true, data }), where).toBeNull();
  }
  const { data } = await team.get('/api/v1/webhooks/deliveries');
  expect(data.deliveries).toHaveLength(1);
});
