import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { eventually } from '../eventually.ts';
import { ManagerProgram, runManagerCommand } from '../manager-program.ts';
import { scratchFolder } from '../scratch.ts';

/** The built manager with isolated sandboxes on a folder of its own, and a team's token. */
export interface BuiltManager {
  url: string;
  token: string;
}

const SCOPES = ['sandboxes:write', 'quota:read', 'usage:read', 'webhooks:read', 'admin'];

/** Starts it; when the test has ended, its sandboxes are deleted and nothing of them is left. */
export async function startBuiltManager(...options: string[]): Promise<BuiltManager> {
  const folder = scratchFolder();
  const data_dir = join(folder, 'data');
  const database = ['--database', `sqlite:${join(folder, 'manager.db')}`];
  const manager = await ManagerProgram.start([
    ...['--listen', '127.0.0.1:0', '--runtime', 'local', '--data-dir', data_dir, ...database],
    ...['--secret-key-file', join(folder, 'key'), ...options],
  ]);
  onTestFinished(() => manager.end('SIGTERM'));
  const scopes = SCOPES.flatMap((scope) => ['--scope', scope]);
  const token = await runManagerCommand('token', 'create', '--team', 'team_1', ...scopes, ...database);
  const built = { url: manager.url, token };
  onTestFinished(async () => {
    const { data } = JSON.parse((await callTo(built)('GET', '/api/v1/sandboxes')).text);
    for (const { id } of data.sandboxes) await callTo(built)('DELETE', `/api/v1/sandboxes/${id}`);
    const left = () => readdirSync(data_dir).filter((name) => !name.startsWith('.'));
    await eventually(() => expect(left()).toEqual([]), { timeout: 60_000, interval: 50 });
  });
  return built;
}

/** A sandbox of such a manager: `path` is its path at the API. */
export async function claimedFrom(...options: string[]) {
  const manager = await startBuiltManager(...options);
  const call = callTo(manager);
  const { text } = await call('POST', '/api/v1/sandboxes', { config: { resources: { cpu: 1 } } });
  return { ...manager, call, path: `/api/v1/sandboxes/${JSON.parse(text).data.sandbox_id}` };
}

function callTo({ url, token }: BuiltManager) {
  return async (method: string, path: string, body?: object) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return { status: response.status, text: await response.text() };
  };
}
