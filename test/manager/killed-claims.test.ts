import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { ManagerProgram, runManagerCommand } from '../support/manager-program.ts';
import { scratchFolder } from '../support/scratch.ts';
import { describeOnStores } from '../support/stores.ts';

const CLAIMS = 40;
const KILLS = 6;
/** The longest that a manager lives after it is ready. */
const LIFE_MS = 60;

describeOnStores('a manager that is killed at random points of its claims', (fresh) => {
  it('gives one sandbox for each key, and leaves none half-made', async () => {
    const database = ['--database', await fresh()];
    const options = [
      ...database,
      ...['--runtime', 'none', '--listen', '127.0.0.1:0', '--secret-key-file', join(scratchFolder(), 'key')],
    ];
    const token = await runManagerCommand(
      ...['token', 'create', '--team', 'team_1', '--scope', 'sandboxes:write'],
      ...database,
    );
    let program = await ManagerProgram.start(options);
    const call = async (method: string, headers: Record<string, string> = {}) => {
      const query = method === 'GET' ? '?limit=200' : '';
      const response = await fetch(`${program.url}/api/v1/sandboxes${query}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...headers },
      });
      // biome-ignore lint/suspicious/noExplicitAny: whatever is answered.
      return { status: response.status, data: ((await response.json()) as any).data };
    };
    const given = new Map<string, string>();
    const waiting = Array.from({ length: CLAIMS }, (_, i) => `key-${i}`);
    const claim = async (key: string) => {
      for (;;) {
        const answer = await call('POST', { 'idempotency-key': key }).catch(() => null);
        if (answer?.status === 201) return void given.set(key, answer.data.sandbox_id);
        await sleep(10);
      }
    };
    const killer = (async () => {
      for (let kills = 0; kills < KILLS; kills++) {
        await sleep(Math.random() * LIFE_MS);
        await program.end('SIGKILL');
        program = await ManagerProgram.start(options);
      }
    })();
    const callers = Array.from({ length: 4 }, async () => {
      for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) await claim(key);
    });
    await Promise.all([killer, ...callers]);
    const { data } = await call('GET');
    await program.end('SIGTERM');
    expect(data.sandboxes.map(({ id }: { id: string }) => id).sort()).toEqual([...given.values()].sort());
    expect(new Set(given.values()).size).toBe(CLAIMS);
    expect(data.sandboxes.every(({ status }: { status: string }) => status === 'running')).toBe(true);
  }, 120_000);
});
