import { join } from 'node:path';
import { expect, it } from 'vitest';
import { SCOPES } from '../../../src/contract/tokens.ts';
import { dereferenced } from '../../support/dereferenced.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

interface Operation {
  summary: string;
  security?: { token: string[] }[];
  parameters: { in: string; name: string }[];
  requestBody?: { content: Record<string, { schema: { properties: object } }> };
}

it('describes every route with its parameters, its body and the scope that it needs', async () => {
  const { manager } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`);
  const served = await (await fetch(`${manager.url}/openapi.json`)).json();
  const document = dereferenced(
    served as { openapi: string; paths: Record<string, Record<string, Operation>> },
  );
  expect(document.openapi).toBe('3.1.0');
  const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  );
  expect(routes.sort()).toEqual([
    'delete /api/v1/sandboxes/{sandbox_id}',
    'delete /api/v1/sandboxes/{sandbox_id}/contexts/{context_id}',
    'delete /api/v1/sandboxes/{sandbox_id}/files',
    'delete /api/v1/sandboxes/{sandbox_id}/ports/{port}',
    'delete /api/v1/sandboxes/{sandbox_id}/ports/{port}/{path}',
    'delete /api/v1/sandboxes/{sandbox_id}/processes/{process_id}',
    'delete /api/v1/sandboxes/{sandbox_id}/webhook/deliveries',
    'delete /api/v1/sandboxes/{sandbox_id}/webhook/deliveries/{event_id}',
    'delete /api/v1/webhooks/deliveries',
    'delete /api/v1/webhooks/deliveries/{event_id}',
    'delete /internal/v1/teams/{team_id}/quotas/{dimension}',
    'get /api/v1/events',
    'get /api/v1/node',
    'get /api/v1/quotas',
    'get /api/v1/quotas/{dimension}',
    'get /api/v1/sandboxes',
    'get /api/v1/sandboxes/{sandbox_id}',
    'get /api/v1/sandboxes/{sandbox_id}/contexts',
    'get /api/v1/sandboxes/{sandbox_id}/contexts/{context_id}',
    'get /api/v1/sandboxes/{sandbox_id}/contexts/{context_id}/ws',
    'get /api/v1/sandboxes/{sandbox_id}/events/stream',
    'get /api/v1/sandboxes/{sandbox_id}/files',
    'get /api/v1/sandboxes/{sandbox_id}/files/archive',
    'get /api/v1/sandboxes/{sandbox_id}/files/list',
    'get /api/v1/sandboxes/{sandbox_id}/files/stat',
    'get /api/v1/sandboxes/{sandbox_id}/files/watch',
    'get /api/v1/sandboxes/{sandbox_id}/ports/{port}',
    'get /api/v1/sandboxes/{sandbox_id}/ports/{port}/{path}',
    'get /api/v1/sandboxes/{sandbox_id}/processes',
    'get /api/v1/sandboxes/{sandbox_id}/processes/{process_id}',
    'get /api/v1/sandboxes/{sandbox_id}/processes/{process_id}/attach',
    'get /api/v1/sandboxes/{sandbox_id}/processes/{process_id}/output',
    'get /api/v1/sandboxes/{sandbox_id}/processes/{process_id}/wait',
    'get /api/v1/sandboxes/{sandbox_id}/status',
    'get /api/v1/sandboxes/{sandbox_id}/webhook/deliveries',
    'get /api/v1/sandboxes/{sandbox_id}/webhook/deliveries/{event_id}',
    'get /api/v1/usage/windows',
    'get /api/v1/webhooks/deliveries',
    'get /api/v1/webhooks/deliveries/{event_id}',
    'get /healthz',
    'get /metrics',
    'get /openapi.json',
    'get /readyz',
    'head /api/v1/sandboxes/{sandbox_id}/files',
    'head /api/v1/sandboxes/{sandbox_id}/ports/{port}',
    'head /api/v1/sandboxes/{sandbox_id}/ports/{port}/{path}',
    'options /api/v1/sandboxes/{sandbox_id}/ports/{port}',
    'options /api/v1/sandboxes/{sandbox_id}/ports/{port}/{path}',
    'patch /api/v1/sandboxes/{sandbox_id}/ports/{port}',
    'patch /api/v1/sandboxes/{sandbox_id}/ports/{port}/{path}',
    'post /api/v1/sandboxes',
    'post /api/v1/sandboxes/{sandbox_id}/contexts',
    'post /api/v1/sandboxes/{sandbox_id}/contexts/{context_id}/exec',
    'post /api/v1/sandboxes/{sandbox_id}/contexts/{context_id}/input',
    'post /api/v1/sandboxes/{sandbox_id}/contexts/{context_id}/resize',
    'post /api/v1/sandboxes/{sandbox_id}/contexts/{context_id}/restart',
    'post /api/v1/sandboxes/{sandbox_id}/contexts/{context_id}/signal',
    'post /api/v1/sandboxes/{sandbox_id}/files',
    'post /api/v1/sandboxes/{sandbox_id}/files/copy',
    'post /api/v1/sandboxes/{sandbox_id}/files/move',
    'post /api/v1/sandboxes/{sandbox_id}/fork',
    'post /api/v1/sandboxes/{sandbox_id}/pause',
    'post /api/v1/sandboxes/{sandbox_id}/ports/{port}',
    'post /api/v1/sandboxes/{sandbox_id}/ports/{port}/{path}',
    'post /api/v1/sandboxes/{sandbox_id}/processes',
    'post /api/v1/sandboxes/{sandbox_id}/processes/{process_id}/resize',
    'post /api/v1/sandboxes/{sandbox_id}/processes/{process_id}/signal',
    'post /api/v1/sandboxes/{sandbox_id}/processes/{process_id}/stdin',
    'post /api/v1/sandboxes/{sandbox_id}/refresh',
    'post /api/v1/sandboxes/{sandbox_id}/resume',
    'post /api/v1/sandboxes/{sandbox_id}/webhook/deliveries/replay',
    'post /api/v1/sandboxes/{sandbox_id}/webhook/deliveries/{event_id}/replay',
    'post /api/v1/webhooks/deliveries/replay',
    'post /api/v1/webhooks/deliveries/{event_id}/replay',
    'put /api/v1/sandboxes/{sandbox_id}',
    'put /api/v1/sandboxes/{sandbox_id}/files',
    'put /api/v1/sandboxes/{sandbox_id}/files/archive',
    'put /api/v1/sandboxes/{sandbox_id}/ports/{port}',
    'put /api/v1/sandboxes/{sandbox_id}/ports/{port}/{path}',
    'put /internal/v1/teams/{team_id}/quotas/{dimension}',
  ]);
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, { summary, security, parameters }] of Object.entries(methods)) {
      const where = `${method} ${path}`;
      expect(summary, where).toMatch(/./);
      if (/^\/(api|internal)\//.test(path)) {
        expect(SCOPES, where).toContain(security?.[0]?.token[0]);
      }
      for (const [, name] of path.matchAll(/\{(\w+)\}/g)) {
        expect(parameters, where).toContainEqual(expect.objectContaining({ in: 'path', name }));
      }
    }
  }
  const claim = document.paths['/api/v1/sandboxes']?.post?.requestBody?.content['application/json']?.schema;
  expect(claim?.properties).toMatchObject({ config: { properties: { webhook: { required: ['url'] } } } });
  const list = document.paths['/api/v1/sandboxes']?.get?.parameters.map(({ name }) => name);
  expect(list).toEqual(['status', 'template_id', 'paused', 'metadata', 'limit', 'offset']);
});
