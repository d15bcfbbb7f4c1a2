import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { newId } from '../../../src/base/ids.ts';
import { managerAt } from '../../../src/ctl/api/clients.ts';
import { fullSandboxId } from '../../../src/ctl/manager/sandbox-id.ts';
import { findTarget } from '../../../src/ctl/settings/target.ts';
import { NoRuntime } from '../../../src/runtime/no-runtime.ts';
import { startManaged } from '../../support/ctl/managed.ts';
import { pipe } from '../../support/ctl/screen.ts';
import { StandInDaemon, succeed } from '../../support/ctl/stand-in-daemon.ts';
import { rowOf, storeWith } from '../../support/manager/sandbox-rows.ts';
import { scratchFolder } from '../../support/scratch.ts';

const START_MS = Date.UTC(2026, 0, 1);

/** What resolves ids, against this manager; counts its requests. */
async function resolver(env: NodeJS.ProcessEnv) {
  const { address, token } = await findTarget({}, env, true);
  let requests = 0;
  const manager = managerAt(address, token);
  const ask = manager.ask.bind(manager);
  manager.ask = (...request) => {
    requests += 1;
    return ask(...request);
  };
  const { out } = pipe();
  const err = pipe();
  const context = { manager, out, err: err.out, json: false, sandbox_id: null };
  return {
    resolve: (text: string) => fullSandboxId(context, text),
    listed: err.text,
    requests: () => requests,
  };
}

describe('the beginning of a sandbox id', () => {
  it('finds each of 10 000 sandboxes with few requests, and lists those that share it', async () => {
    const managed = await startManaged(new NoRuntime());
    // Several in each millisecond, as of a burst of claims.
    const ids = Array.from({ length: 10_000 }, (_, i) => newId('sbx_', START_MS + Math.floor(i / 3) * 1_000));
    const rows = ids.map((id, i) => rowOf(id, { created_at_ms: START_MS + Math.floor(i / 3) * 1_000 }));
    const { store } = await storeWith(managed.database);
    await store.write(async (tx) => {
      for (const row of rows) await store.insert(tx, row);
    });
    for (const index of [0, 1, 199, 200, 5_000, 7_777, 9_998, 9_999]) {
      const id = ids[index] as string;
      const { resolve, requests } = await resolver(managed.env);
      expect(await resolve(id.slice(0, 30))).toBe(id);
      expect(await resolve(id.slice('sbx_'.length, 30))).toBe(id);
      expect(requests()).toBeLessThan(2 * 12);
    }
    const { resolve, listed } = await resolver(managed.env);
    const shared = (ids[6_000] as string).slice(0, 'sbx_019a2b3c-4d5e'.length);
    await expect(resolve(shared)).rejects.toThrow(`3 sandbox ids begin with ${shared}: give more of it`);
    const lines = listed();
    for (const id of ids.filter((each) => each.startsWith(shared))) expect(lines).toContain(id);
    await expect(resolve('sbx_0')).rejects.toThrow('at least 200 sandbox ids begin with sbx_0');
    await expect(resolve('ffff')).rejects.toThrow('no sandbox id begins with sbx_ffff');
    await expect(resolve('sbx_00')).rejects.toThrow('no sandbox id begins with sbx_00');
    await expect(resolve('../x')).rejects.toMatchObject({ exit_code: 2 });
  }, 120_000);

  it('asks nobody for a whole id, and no manager that answers nonsense more than a few dozen times', async () => {
    const manager = new StandInDaemon();
    onTestFinished(() => manager.stop());
    const token_file = join(scratchFolder(), 'token');
    writeFileSync(token_file, 'a-token');
    const env = { SANDBOXCTL_MANAGER: await manager.start(), SANDBOXCTL_TOKEN_FILE: token_file };
    const whole = newId('sbx_', START_MS);
    const { resolve } = await resolver(env);
    expect(await resolve(whole)).toBe(whole);
    expect(manager.received).toEqual([]);
    let asked = 0;
    manager.on('GET /sandboxes', (_, response) => {
      asked += 1;
      succeed(response, 200, { sandboxes: [{ id: `sbx_${asked % 2}` }], count: 1e15, has_more: true });
    });
    await expect(resolve('sbx_018')).rejects.toThrow('no sandbox id begins with');
    expect(asked).toBeLessThan(100);
  });
});
