import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { firstToken, ManagerProgram } from '../manager-program.ts';
import { scratchFolder } from '../scratch.ts';

export const LIMIT = 20;
const SCOPES = ['sandboxes:write', 'quota:read', 'usage:read'];

/** A manager as a program that can be killed, with a limit on active sandboxes from its config file. */
export async function killable(url: string) {
  const folder = scratchFolder();
  const config = join(folder, 'config.yaml');
  const quotas = `default_team_quotas:\n  - dimension: active_sandboxes\n    limit_value: ${LIMIT}\n`;
  writeFileSync(config, `database: ${url}\nruntime: none\nlisten: 127.0.0.1:0\n${quotas}`);
  const options = ['--config', config, '--secret-key-file', join(folder, 'key')];
  const token = await firstToken(url, ...SCOPES);
  const manager = { program: await ManagerProgram.start(options) };
  return {
    config,
    // biome-ignore lint/suspicious/noExplicitAny: whatever is answered.
    async call(method: string, path: string): Promise<{ status: number; data: any }> {
      const headers = { authorization: `Bearer ${token}` };
      const response = await fetch(`${manager.program.url}/api/v1${path}`, { method, headers });
      // biome-ignore lint/suspicious/noExplicitAny: whatever is answered.
      return { status: response.status, data: ((await response.json()) as any).data };
    },
    async killAndStart() {
      await manager.program.end('SIGKILL');
      manager.program = await ManagerProgram.start(options);
    },
    end: () => manager.program.end('SIGTERM'),
  };
}
