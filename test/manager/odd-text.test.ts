import { expect, it } from 'vitest';
import type { Client } from '../support/manager/manager-client.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { describeOnStores } from '../support/stores.ts';

/** Texts that a path, a query or a database may choke on; as they stand in a URL. */
const IN_URLS = [
  '%00',
  'sbx_%00',
  '%ED%A0%80',
  '%C0%AE%C0%AE',
  '%EF%BF%BF',
  '%F0%9F%A6%8A',
  '%27%20or%201%3D1--',
  'a'.repeat(199),
  'a'.repeat(5_000),
  '99999999999999999999',
  '-1',
  '1e309',
];
const IN_BODIES = ['\0', 'a\0b', '\ud800', 'a\udfff', '\uffff', '1e309', 'x'.repeat(100_000), ''];
const QUERIES: Record<string, string[]> = {
  '/api/v1/sandboxes': ['status', 'template_id', 'paused', 'limit', 'offset', 'metadata'],
  '/api/v1/webhooks/deliveries': ['state', 'event_type', 'limit', 'cursor'],
  '/api/v1/usage/windows': ['cursor', 'limit', 'window_type'],
};
const CLAIMS = (text: string): unknown[] => [
  { template: text },
  { config: { webhook: { url: text } } },
  { config: { webhook: { url: `http://127.0.0.1:9/${text}` } } },
  { config: { webhook: { url: 'http://127.0.0.1:9/', secret: text } } },
  { config: { webhook: { url: 'http://127.0.0.1:9/', watch_dir: `/${text}` } } },
  { config: { env_vars: { [text]: 'a' } } },
  { config: { env_vars: { a: text } } },
  { config: { resources: { memory: text } } },
  { config: { resources: { cpu: text } } },
  { config: { metadata: { [text]: text } } },
  { config: { metadata: { a: text } } },
  { config: { webhook: { url: 'http://127.0.0.1:9/', watch_ignore: [text] } } },
  { config: { webhook: { url: 'http://127.0.0.1:9/', events: [text] } } },
  { [text]: 1 },
];

async function sweep(team: Client, calls: [method: string, path: string, body?: unknown][]): Promise<void> {
  const failed: string[] = [];
  for (const [method, path, body] of calls) {
    const { status, error } = await team.call(method, path, body);
    if (status >= 500)
      failed.push(`${method} ${path} ${JSON.stringify(body)?.slice(0, 80)}: ${error?.message}`);
  }
  expect(failed).toEqual([]);
}

describeOnStores('a text that is none', (fresh) => {
  it('in a path or a query of any route is no trouble of the database', async () => {
    const { client } = await startManager(await fresh());
    const team = await client(
      'team_1',
      'sandboxes:write',
      'webhooks:read',
      'usage:read',
      'quota:read',
      'admin',
    );
    const document = (await (await fetch(`${team.url}/openapi.json`)).json()) as {
      paths: Record<string, object>;
    };
    const calls: [string, string][] = [];
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const method of Object.keys(methods)) {
        for (const text of IN_URLS) {
          if (path.includes('{')) calls.push([method.toUpperCase(), path.replaceAll(/\{[^}]+\}/g, text)]);
          for (const name of QUERIES[path] ?? ['any'])
            calls.push([method.toUpperCase(), `${path}?${name}=${text}`]);
        }
      }
    }
    expect(calls.length).toBeGreaterThan(400);
    await sweep(team, calls);
    expect((await team.get('/api/v1/sandboxes/%00')).status).toBe(404);
    expect((await team.get('/api/v1/sandboxes?template_id=%00')).error?.details?.field).toBe('template_id');
  });

  it('in a body is refused by name or taken as it is', async () => {
    const { client } = await startManager(await fresh());
    const team = await client('team_1', 'sandboxes:write', 'admin');
    const path = `/api/v1/sandboxes/${await team.claim()}`;
    const calls = IN_BODIES.flatMap((text): [string, string, unknown][] => [
      ...CLAIMS(text).map((body): [string, string, unknown] => ['POST', '/api/v1/sandboxes', body]),
      ['PUT', path, { config: { env_vars: { [text]: text } } }],
      ['PUT', path, { config: { resources: { memory: text } } }],
      ['POST', `${path}/pause`, { reason: text }],
      ['POST', `${path}/resume`, { reason: text }],
      ['POST', `${path}/fork`, { config: { ttl: text } }],
      ['PUT', '/internal/v1/teams/team_1/quotas/active_sandboxes', { limit_value: text, kind: text }],
      [
        'PUT',
        `/internal/v1/teams/${encodeURIComponent(text.toWellFormed())}/quotas/active_sandboxes`,
        { limit_value: 1e6 },
      ],
    ]);
    await sweep(team, calls);
  });
});
