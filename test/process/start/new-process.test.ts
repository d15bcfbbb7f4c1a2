import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { fileLimit } from '../../support/process/file-limit.ts';
import { start } from '../../support/process/harness.ts';

test('a start that the command is at fault for leaves no folder behind', async () => {
  const { supervisor, directory } = await start();
  const failing = supervisor.spawn({ command: ['no-such-program'], process_id: 'p' });
  await expect(failing).rejects.toMatchObject({ code: 'invalid_request' });
  expect(await readdir(directory)).toEqual([]);
});

test('a start that the disk refuses says so, and the id can be used once the disk is there again', async () => {
  const { supervisor, directory } = await start();
  await rm(directory, { recursive: true });
  await writeFile(directory, 'in its place');
  const request = { command: ['true'], process_id: 'p' };
  await expect(supervisor.spawn(request)).rejects.toMatchObject({
    code: 'outbox_unavailable',
    message: expect.stringContaining('ENOTDIR'),
  });
  await rm(directory);
  await mkdir(directory);
  expect(await supervisor.spawn(request)).toMatchObject({ created: true });
});

test('a start for which no file can be opened is refused for the limit, and not for the command', async () => {
  const { supervisor } = await start();
  const limitFiles = fileLimit();
  await limitFiles(3);
  const refused = await supervisor.spawn({ command: ['true'], process_id: 'p' }).catch((error) => error);
  await limitFiles(1_024);
  expect(refused).toMatchObject({ code: 'too_many_requests' });
  expect(await supervisor.spawn({ command: ['true'], process_id: 'p' })).toMatchObject({ created: true });
});
