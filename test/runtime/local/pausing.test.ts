import { mkdirSync, openSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { ResourceGroups } from '../../../src/runtime/limits/resource-groups.ts';
import { identify } from '../../../src/runtime/local/host-process.ts';
import { setSandboxPaused } from '../../../src/runtime/local/running-sandbox.ts';
import { SandboxFiles } from '../../../src/runtime/local/sandbox-files.ts';
import { scratchFolder } from '../../support/scratch.ts';

it('a resume that the daemon refuses leaves the processes frozen', async () => {
  const data_dir = scratchFolder();
  const files = new SandboxFiles(data_dir, openSync(data_dir, 'r'), 'sbx-1');
  mkdirSync(files.directory);
  const daemon = await identify(process.pid);
  const limits = { memory_mib: 128, cpu_millis: 100 };
  files.writeRecord({
    ...{ sandbox_id: 'sbx-1', team_id: 'team_1', ...limits, watch_dir: null, program_version: '' },
    ...{ state: 'created', outcome: null, is_paused: true, user: null, daemon },
  });
  mkdirSync(join(files.socket_address, '..'), { recursive: true });
  const server = createServer((request, response) => {
    request.resume();
    const error = { code: 'outbox_unavailable', message: 'The disk is full.' };
    response.writeHead(503, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ success: false, error }));
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(files.socket_address, resolve));
  const done: string[] = [];
  const hold = async () => {
    done.push('hold');
    return 100;
  };
  const frozen = { thaw: () => done.push('thaw'), freeze: async () => void done.push('freeze') };
  const limit = () => done.push('limit');
  const groups = { frozen, hold, limit } as unknown as ResourceGroups;
  const resumed = setSandboxPaused(files, false, null, { groups, clock: systemClock });
  await expect(resumed).rejects.toMatchObject({ code: 'outbox_unavailable' });
  expect(done).toEqual(['limit', 'thaw', 'freeze', 'hold']);
  expect(files.readRecord()).toMatchObject({ is_paused: true, held_mib: 100 });
});
