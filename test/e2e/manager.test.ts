import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { EVENT_TYPES } from '../../src/contract/events.ts';
import { startConsumer } from '../support/consumer.ts';
import { ManagerProgram, runManagerCommand } from '../support/manager-program.ts';
import { scratchFolder } from '../support/scratch.ts';

const SECRET = 'a-key-for-this-test';

/** Whether processes can be isolated here at all. */
function canIsolate(): boolean {
  try {
    execFileSync('bwrap', ['--unshare-all', '--ro-bind', '/', '/', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

it.skipIf(!canIsolate())(
  'a real sandbox from its claim to its deletion tells of everything, signed',
  async () => {
    const consumer = await startConsumer();
    const folder = scratchFolder();
    const data_dir = join(folder, 'data');
    const database = ['--database', `sqlite:${join(folder, 'manager.db')}`];
    const token = await runManagerCommand(
      ...['token', 'create', '--team', 'team_1', '--scope', 'sandboxes:write', '--scope', 'webhooks:read'],
      ...database,
    );
    const program = await ManagerProgram.start([
      ...['--listen', '127.0.0.1:0', '--data-dir', data_dir, '--secret-key-file', join(folder, 'key')],
      ...['--allow-webhook-cidr', '127.0.0.0/8', ...database],
    ]);
    onTestFinished(() => program.end('SIGTERM'));
    const call = async (method: string, path: string, body?: object) => {
      const response = await fetch(`${program.url}/api/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      // biome-ignore lint/suspicious/noExplicitAny: whatever is answered.
      const { data, error } = (await response.json()) as any;
      return { status: response.status, data, error };
    };
    const webhook = { url: consumer.url, secret: SECRET, watch_dir: '/workspace' };
    const claimed = await call('POST', '/sandboxes', {
      config: { webhook, env_vars: { GREETING: 'hello' } },
    });
    expect(claimed.error).toBeUndefined();
    const path = `/sandboxes/${claimed.data.sandbox_id}`;
    onTestFinished(async () => {
      await call('DELETE', path);
    });
    const shell = (text: string) => call('POST', `${path}/processes?wait_ms=30000`, { shell: text });

    const greeted = await shell('mkdir -p /workspace && echo "$GREETING from $(id -u)"');
    expect(greeted.data.output.stdout).toMatch(/^hello from \d+\n$/);
    await shell('sleep 1; echo content > /workspace/file');
    const published = await shell(
      `curl -s -H 'Content-Type: application/json' -d '{"payload":{"price":1.10}}' $SANDBOXD_URL/api/v1/webhook/publish`,
    );
    expect(published.data.output.stdout).toContain('"success":true');
    await shell('kill -SEGV $$');
    expect((await call('POST', `${path}/pause`)).error).toBeUndefined();
    expect((await shell('true')).status).toBe(409);
    expect((await call('POST', `${path}/resume`)).error).toBeUndefined();

    const forked = await call('POST', `${path}/fork`);
    expect(forked.error).toBeUndefined();
    const child = `/sandboxes/${forked.data.sandbox.id}`;
    expect((await call('POST', `${child}/resume`)).error).toBeUndefined();
    const copied = await call('POST', `${child}/processes?wait_ms=30000`, { shell: 'cat /workspace/file' });
    expect(copied.data.output.stdout).toBe('content\n');

    for (const each of [child, path]) {
      expect((await call('DELETE', each)).status).toBe(200);
      await vi.waitFor(async () => expect((await call('GET', each)).status).toBe(404), { timeout: 30_000 });
    }
    await consumer.arrival('sandbox.deleted', 2);
    await consumer.arrival('sandbox.killed', 2);
    expect([...new Set(consumer.types)].sort()).toEqual([...EVENT_TYPES].sort());
    expect(consumer.unsigned(SECRET)).toEqual([]);
    expect(
      existsSync(data_dir) ? readdirSync(data_dir).filter((name) => name.startsWith('sbx_')) : [],
    ).toEqual([]);
    const of_parent = consumer.deliveries.filter(
      ({ event }) => `/sandboxes/${(event as never as { sandbox_id: string }).sandbox_id}` === path,
    );
    const kinds = of_parent.map(({ event }) => event.event_type);
    expect(kinds.filter((kind) => kind === 'sandbox.paused')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'sandbox.resumed')).toHaveLength(1);
    expect(program.log).not.toContain(SECRET);
  },
  120_000,
);
