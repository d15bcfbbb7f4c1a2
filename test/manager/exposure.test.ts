import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ManagerProgram } from '../support/manager-program.ts';
import { postgresPrograms, startPostgres } from '../support/postgres.ts';
import { HAS_REDIS, RedisServer } from '../support/redis.ts';
import { scratchFolder } from '../support/scratch.ts';

const PASSWORD = 'made-for-this-test';

/** How a manager of local sandboxes starts beside these stores: '' where it does. */
async function refusal(...stores: string[]): Promise<string> {
  const folder = scratchFolder();
  const own = ['--secret-key-file', join(folder, 'key'), '--data-dir', join(folder, 'data')];
  try {
    const manager = await ManagerProgram.start([
      ...['--listen', '127.0.0.1:0', '--runtime', 'local'],
      ...own,
      ...stores,
    ]);
    await manager.end('SIGTERM');
    return '';
  } catch (error) {
    return (
      (error as Error).message.split('\n').find((line) => line.startsWith('sandbox-manager: ')) ??
      String(error)
    );
  }
}

describe.skipIf(postgresPrograms() === null)('a manager of local sandboxes, on PostgreSQL', () => {
  it('refuses a server that lets anybody in, also where its own URL has a password', async () => {
    const server = await startPostgres({}, 'trust');
    onTestFinished(() => server.stop());
    const url = new URL(await server.database());
    url.password = PASSWORD;
    expect(await refusal('--database', url.href)).toMatch(
      /^sandbox-manager: --database lets anybody in without a password, .*pg_hba\.conf.*--runtime none$/,
    );
    expect(await refusal('--database', url.href)).not.toContain(PASSWORD);
  });

  it('starts beside a server that asks for a password', async () => {
    const server = await startPostgres();
    onTestFinished(() => server.stop());
    expect(await refusal('--database', await server.database())).toBe('');
  });
});

describe.skipIf(!HAS_REDIS)('a manager of local sandboxes, with Redis', () => {
  const database = () => ['--database', `sqlite:${join(scratchFolder(), 'manager.db')}`];

  it('refuses a server that takes commands from anybody', async () => {
    const server = await RedisServer.start();
    onTestFinished(() => server.stop());
    const message =
      /^sandbox-manager: --redis takes commands without a password, .*requirepass.*--runtime none$/;
    expect(await refusal(...database(), '--redis', server.url)).toMatch(message);
    const with_password = server.url.replace('redis://', `redis://:${PASSWORD}@`);
    expect(await refusal(...database(), '--redis', with_password)).toMatch(message);
  });

  it('starts beside a server that asks for a password', async () => {
    const server = await RedisServer.start();
    onTestFinished(() => server.stop());
    await server.command('CONFIG', 'SET', 'requirepass', PASSWORD);
    const with_password = server.url.replace('redis://', `redis://:${PASSWORD}@`);
    expect(await refusal(...database(), '--redis', with_password)).toBe('');
  });
});
