import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startConsumer } from '../../../support/consumer.ts';
import { DOWN_URL, LocalDaemon } from '../../../support/daemon/local-daemon.ts';
import { eventually } from '../../../support/eventually.ts';
import { CAN_HANG, hungMount, unlessHangs } from '../../../support/hung-mount.ts';
import { scratchFolder } from '../../../support/scratch.ts';

const at = (route: string, path: string, more = '') =>
  `/files${route}?path=${encodeURIComponent(path)}${more}`;

/** The processes that a process has started and that have not been waited for. */
function children(pid = process.pid): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    const text = readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').trim();
    return text === '' ? [] : text.split(' ').map(Number);
  });
}

/** Those of them that carry out file operations. */
function fileProcesses(): number[] {
  return children().filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('account-program');
    } catch {
      return false;
    }
  });
}

test.runIf(CAN_HANG)(
  `100 file operations that hang hold up nothing else, and the daemon ends${unlessHangs}`,
  async () => {
    const mount = await hungMount({ file: { text: 'text', mode: 0o644 } });
    const consumer = await startConsumer();
    const daemon = await LocalDaemon.start('--webhook-url', consumer.url);
    const folder = scratchFolder();
    await daemon.ask(at('', join(folder, 'file')), { method: 'PUT', body: 'x' });
    await mount.hang();
    const [first] = fileProcesses();
    const gone = new AbortController();
    const hanging = (path: string) => daemon.ask(path, { signal: gone.signal }).catch(() => null);
    for (let i = 0; i < 90; i++) void hanging(at('/stat', join(mount.path, `${i}`)));
    for (let i = 0; i < 5; i++) void hanging(at('', join(mount.path, `transfer ${i}`)));
    for (let i = 0; i < 5; i++) void hanging(at('/list', join(mount.path, `directory ${i}`)));
    await eventually(async () => expect(await mount.waiting()).toBe(100), { timeout: 20_000 });
    expect((await daemon.ask(at('/stat', folder))).status).toBe(200);
    expect((await daemon.ask(at('/list', folder))).data.entries).toHaveLength(1);
    expect((await daemon.ask(at('', join(folder, 'file')))).text).toBe('x');
    expect((await daemon.ask(at('', join(folder, 'new')), { method: 'PUT', body: 'y' })).status).toBe(200);
    expect((await daemon.run({ command: ['true'] }, '?wait_ms=10000')).exit_code).toBe(0);
    expect((await daemon.ask('/webhook/publish', { json: { payload: { a: 1 } } })).status).toBe(202);
    await consumer.arrival('agent.event');
    expect((await daemon.ask('/sandbox/pause', { method: 'POST' })).status).toBe(200);
    expect((await daemon.ask('/sandbox/resume', { method: 'POST' })).status).toBe(200);
    gone.abort();
    // What still hangs for clients that have gone counts, and a fresh process takes new requests.
    await eventually(
      async () => {
        expect((await daemon.ask(at('/stat', folder))).status).toBe(200);
        expect(fileProcesses()).not.toContain(first);
      },
      { timeout: 20_000 },
    );
    await daemon.daemon.stop('signal', 'SIGTERM');
    await mount.release();
    await eventually(() => expect(fileProcesses()).toEqual([]));
  },
);

test('a process for files that somebody has stopped is replaced, and ends with the daemon', async () => {
  const daemon = await LocalDaemon.start('--webhook-url', DOWN_URL);
  const folder = scratchFolder();
  expect((await daemon.ask(at('/stat', folder))).status).toBe(200);
  const [first = 0] = fileProcesses();
  process.kill(first, 'SIGSTOP');
  const { status, error } = await daemon.ask(at('/stat', folder));
  expect([status, error.code]).toEqual([503, 'unavailable']);
  expect((await daemon.ask(at('/stat', folder))).status).toBe(200);
  const [second = 0] = fileProcesses().filter((pid) => pid !== first);
  process.kill(second, 'SIGSTOP');
  await daemon.daemon.stop('signal', 'SIGTERM');
  await eventually(() => expect(fileProcesses()).toEqual([]));
});
