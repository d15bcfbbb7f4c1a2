import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { IS_ROOT } from '../../support/rights.ts';
import { scratchFolder } from '../../support/scratch.ts';

const SANDBOXES = '/api/v1/sandboxes';
const BALLAST_BYTES = 8 * 1024 * 1024;
const CLAIMS_MAX = 2_000;

/** A disk of its own. */
function smallDisk(): string {
  const folder = join(scratchFolder(), 'disk');
  mkdirSync(folder);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', folder]);
  onTestFinished(() => {
    execFileSync('umount', ['-l', folder]);
  });
  return folder;
}

/** Writes until nothing more fits. */
function fill(path: string): void {
  const file = openSync(path, 'a');
  const bytes = Buffer.alloc(4096);
  try {
    for (;;) writeSync(file, bytes);
  } catch {
    closeSync(file);
  }
}

describe.skipIf(!IS_ROOT)('a full disk below SQLite', () => {
  it('is 503 for what needs room, and still lets sandboxes be deleted', async () => {
    const disk = smallDisk();
    const path = join(disk, 'manager.db');
    const { client } = await startManager(`sqlite:${path}`);
    const team = await client('team_1', 'sandboxes:write', 'webhooks:read');
    const config = { webhook: { url: 'http://127.0.0.1:9/', secret: 's' } };
    const ids = [await team.claim(config), await team.claim(config)];
    await eventually(() => expect(statSync(`${path}-ballast`).size).toBe(BALLAST_BYTES));
    fill(join(disk, 'filler'));
    let refused = 0;
    for (let i = 0; i < CLAIMS_MAX && refused < 3; i++) {
      const { status, error, data } = await team.post(SANDBOXES, { config });
      if (status === 201) {
        ids.push(data.sandbox_id);
        continue;
      }
      expect([status, error?.code]).toEqual([503, 'unavailable']);
      refused += 1;
    }
    expect(refused).toBe(3);
    const [first] = ids as [string];
    expect((await team.call('DELETE', `${SANDBOXES}/${first}`)).status).toBe(202);
    await eventually(async () => {
      expect((await team.get(`${SANDBOXES}/${first}?include_deleted=true`)).data.status).toBe('deleted');
    });
    rmSync(join(disk, 'filler'));
    expect((await team.post(SANDBOXES, { config })).status).toBe(201);
    const { data } = await team.get('/api/v1/webhooks/deliveries');
    expect(data.deliveries).toMatchObject([{ sandbox_id: first }]);
  });
});
