import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ControlToken } from '../../src/daemon/control-token.ts';
import { requestDaemon } from '../../src/runtime/control-client.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { launch, type SandboxdProgram, startSandboxd } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

/** Nobody listens there; and the daemon waits for nothing at its end. */
const DOWN = ['--webhook-url', 'http://127.0.0.1:9/', '--shutdown-grace-ms', '0'];

/** Removes the outbox's files and publishes until they are back. */
async function restored(daemon: SandboxdProgram): Promise<void> {
  for (const end of ['', '-wal', '-shm']) rmSync(join(daemon.state_dir, `outbox.db${end}`), { force: true });
  await eventually(async () => {
    await daemon.publish('{}');
    expect(existsSync(join(daemon.state_dir, 'outbox.db'))).toBe(true);
  }, 120_000);
}

describe('the control token', () => {
  it('is removed by an init over the control socket, and does not come back', async () => {
    const socket = join(scratchFolder(), 'control.sock');
    const token_file = join(scratchFolder(), 'token');
    const daemon = launch([
      ...['--control-socket', socket, '--control-token-file', token_file, '--await-init'],
      ...['--shutdown-grace-ms', '0'],
    ]);
    await daemon.logged('listening');
    const authorization = `Bearer ${readFileSync(token_file, 'utf8').trim()}`;
    const withToken = async () =>
      (await fetch(`${daemon.url}/api/v1/sandbox`, { headers: { authorization } })).status;
    expect(await withToken()).toBe(200);
    const body = { sandbox_id: 'sbx_1', team_id: 't', webhook: { url: 'http://127.0.0.1:9/' } };
    const init = await requestDaemon(socket, {
      method: 'POST',
      path: '/sandbox/init',
      body,
      within_ms: 20_000,
    });
    expect(init).toMatchObject({ status: 200 });
    expect(await withToken()).toBe(401);
    expect(
      (await fetch(`${daemon.url}/api/v1/sandbox`, { headers: { authorization: 'Bearer ' } })).status,
    ).toBe(401);
    await restored(daemon);
    expect(existsSync(token_file)).toBe(false);
    expect(await requestDaemon(socket, { method: 'GET', path: '/sandbox', within_ms: 20_000 })).toMatchObject(
      {
        status: 200,
      },
    );
  });

  it('is restored with the outbox if its file was removed together with it, and was in the state directory', async () => {
    const together = await startSandboxd(DOWN);
    rmSync(join(together.state_dir, 'control-token'));
    await restored(together);
    expect(existsSync(join(together.state_dir, 'control-token'))).toBe(true);
    expect((await together.call('GET', '/api/v1/sandbox')).status).toBe(200);
    const elsewhere = join(scratchFolder(), 'token');
    const outside = await startSandboxd([...DOWN, '--control-token-file', elsewhere]);
    rmSync(elsewhere);
    await restored(outside);
    expect(existsSync(elsewhere)).toBe(false);
  });

  it('is not restored if its file was removed on purpose before', async () => {
    const clock = new ManualClock();
    const state_dir = scratchFolder();
    const path = join(state_dir, 'control-token');
    const token = new ControlToken(path, state_dir, clock);
    expect(token.matches('')).toBe(false);
    token.read();
    const text = readFileSync(path, 'utf8').trim();
    rmSync(path);
    token.checkFile();
    await clock.advance(500);
    token.restore();
    expect(readFileSync(path, 'utf8').trim()).toBe(text);
    rmSync(path);
    token.checkFile();
    await clock.advance(60_000);
    token.restore();
    expect(existsSync(path)).toBe(false);
    expect(token.matches(text)).toBe(true);
    token.forget();
    for (const given of ['', text]) expect(token.matches(given)).toBe(false);
    token.renew();
    expect(existsSync(path)).toBe(false);
  });
});
