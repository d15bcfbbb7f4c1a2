import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { startConsumer } from '../support/consumer.ts';
import { startSandboxd } from '../support/sandboxd-program.ts';
import { fault } from './support/scene.ts';

const SECRET = 'a key made for this test';
const SOURCE = join(import.meta.dirname, '../../src/outbox/sqlite/undelivered/undelivered-reader.ts');
const CLOCK = join(import.meta.dirname, '../../src/base/clock.ts');

/** Reads a hand-over in a program of its own, under strace; prints how many records came, or what was thrown. */
function read(state_dir: string, inject: string[]): string {
  const source = {
    state_dir,
    sandbox_id: 'sbx_1',
    team_id: 'team',
    record_key: null,
    webhook_secret: SECRET,
  };
  const program = `
    const { readUndelivered } = await import(${JSON.stringify(SOURCE)});
    const { systemClock } = await import(${JSON.stringify(CLOCK)});
    try {
      const pages = [...readUndelivered(${JSON.stringify(source)}, systemClock)];
      const lost = pages.reduce((sum, page) => sum + page.lost_records, 0);
      console.log('read', pages.flatMap(({ records }) => records).length, 'lost', lost);
    } catch (error) {
      console.log('thrown');
    }`;
  const node = [process.execPath, '--input-type=module', '-e', program];
  const { stdout } = spawnSync('strace', ['-f', '-qq', '-o', '/dev/null', ...inject, ...node], {
    encoding: 'utf8',
  });
  return stdout.trim();
}

describe('hand-over', () => {
  fault(
    'an error that may pass is thrown, so that nothing is removed before all was read',
    { needs: ['strace'] },
    async () => {
      const consumer = await startConsumer();
      consumer.answer = (_, response) => response.writeHead(503).end();
      const own = ['--sandbox-id', 'sbx_1', '--team-id', 'team', '--webhook-secret', SECRET];
      const daemon = await startSandboxd(['--webhook-url', consumer.url, ...own]);
      for (let n = 0; n < 5; n++) await daemon.publish('{}');
      await daemon.end('SIGKILL');
      const database = join(daemon.state_dir, 'outbox.db');
      for (const [call, path] of [
        ['openat', database],
        ['openat', `${database}-wal`],
        ['pread64', database],
        ['pread64', `${database}-wal`],
      ] as const) {
        for (const error of ['EMFILE', 'EIO', 'ENOMEM']) {
          const inject = ['-P', path, '-e', `inject=${call}:error=${error}:when=1+`];
          expect(read(daemon.state_dir, inject), `${call} ${error}`).toBe('thrown');
        }
      }
      expect(read(daemon.state_dir, [])).toBe('read 6 lost 0');
    },
  );
});
