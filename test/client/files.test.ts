import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { expect, expectTypeOf, it } from 'vitest';
import { createDaemonClient } from '../../src/client/client.ts';
import { startDaemon } from '../support/daemon/running-daemon.ts';
import { scratchFolder } from '../support/scratch.ts';

it('files and archives go up and down as streams, and directories are listed page by page', async () => {
  const { port, token } = await startDaemon();
  const { files } = createDaemonClient({ url: `http://127.0.0.1:${port}`, token }).sandbox;
  const folder = scratchFolder();
  const path = join(folder, 'tree/content');
  const content = randomBytes(300_000);
  const written = await files.upload(path, new Blob([content]).stream(), { parents: true, mode: '0640' });
  expectTypeOf(written.etag).toEqualTypeOf<string>();
  expect(written).toMatchObject({ written: true, size: content.length });

  const whole = await files.download(path);
  expect(whole.headers.get('etag')).toBe(written.etag);
  expect(content.equals(Buffer.from(await whole.arrayBuffer()))).toBe(true);
  const part = await files.download(path, { headers: { Range: 'bytes=10-19' } });
  expect(content.subarray(10, 20).equals(Buffer.from(await part.arrayBuffer()))).toBe(true);
  const stale = files.upload(path, 'other', { headers: { 'If-Match': '"other"' } });
  await expect(stale).rejects.toMatchObject({ code: 'precondition_failed', details: { path } });

  const { body } = await files.downloadArchive(join(folder, 'tree'), { format: 'tar.gz' });
  if (body === null) throw new Error('the archive has no body');
  const unpacked = await files.uploadArchive(join(folder, 'copy'), body);
  expect(unpacked.bytes).toBe(content.length);
  for (const name of ['a', 'b', 'c']) await files.upload(join(folder, 'copy', name), name);
  const names: string[] = [];
  for await (const entry of files.list(join(folder, 'copy'), { limit: 2 }))
    names.push(`${entry.name} ${entry.mode}`);
  expect(names).toEqual(['a 0644', 'b 0644', 'c 0644', 'content 0640']);
});
