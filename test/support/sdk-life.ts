import { expect } from 'vitest';
import { eventually } from './eventually.ts';

/** What the package's client does with a sandbox, from claim to deletion; `url` is where its events go. */
export async function liveThroughClient(
  sdk: typeof import('../../src/client/client.ts'),
  { url, token, webhook }: { url: string; token: string; webhook: { url: string; secret: string } },
): Promise<void> {
  const manager = sdk.createManagerClient({ url, token });
  const body = { config: { webhook, ttl: 3600, env_vars: { MODE: 'first' } } };
  const { sandbox_id } = await manager.POST('/api/v1/sandboxes', { body });
  const of = { path: { sandbox_id } };
  const sandbox = manager.sandbox(sandbox_id);
  const output = async (shell: string, id = sandbox_id) => {
    const { process_id } = await manager.sandbox(id).POST('/api/v1/processes', { body: { shell } });
    let text = '';
    for await (const event of manager.sandbox(id).output(process_id)) {
      if (event.type === 'output') text += new TextDecoder().decode(event.bytes);
    }
    return text;
  };
  expect(await output('echo $MODE; pwd')).toBe('first\n/workspace\n');

  const written = await sandbox.files.upload('/workspace/data/file', new Blob(['kept']), { parents: true });
  expect(written).toMatchObject({ size: 4 });
  expect(await (await sandbox.files.download('/workspace/data/file')).text()).toBe('kept');
  const paths: string[] = [];
  for await (const { path } of sandbox.files.list('/workspace/data')) paths.push(path);
  expect(paths).toEqual(['/workspace/data/file']);

  const change = { config: { env_vars: { MODE: 'second' }, resources: { memory: '320Mi' } } };
  const changed = await manager.PUT('/api/v1/sandboxes/{sandbox_id}', { ...of, body: change });
  expect(changed.resources.memory).toBe('320Mi');
  expect(await output('echo $MODE')).toBe('second\n');

  expect(await manager.POST('/api/v1/sandboxes/{sandbox_id}/pause', of)).toMatchObject({ status: 'paused' });
  await expect(output('true')).rejects.toMatchObject({ code: 'conflict' });
  expect(await manager.POST('/api/v1/sandboxes/{sandbox_id}/resume', of)).toMatchObject({ resumed: true });
  const forked = await manager.POST('/api/v1/sandboxes/{sandbox_id}/fork', of);
  const child = forked.sandbox.id;
  await manager.POST('/api/v1/sandboxes/{sandbox_id}/resume', { path: { sandbox_id: child } });
  expect(await output('cat data/file', child)).toBe('kept');

  await eventually(async () => {
    const delivered: string[] = [];
    for await (const each of sandbox.deliveries({ state: 'delivered' })) delivered.push(each.event_type);
    expect(delivered).toEqual(expect.arrayContaining(['sandbox.ready', 'sandbox.paused', 'process.exited']));
  });
  for (const id of [child, sandbox_id])
    await manager.DELETE('/api/v1/sandboxes/{sandbox_id}', { path: { sandbox_id: id } });
  for (const id of [child, sandbox_id]) {
    await eventually(async () => {
      const last = manager.GET('/api/v1/sandboxes/{sandbox_id}', {
        path: { sandbox_id: id },
        query: { include_deleted: true },
      });
      expect((await last).status).toBe('deleted');
    });
  }
}
