import { PassThrough, Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { program, start } from '../../support/process/harness.ts';

test('both streams of a process are copied, to the end', async () => {
  const { supervisor } = await start();
  const stdout = new PassThrough();
  const texts: string[] = [];
  stdout.on('data', (data) => texts.push(String(data)));
  const { process } = await supervisor.spawn(
    { shell: 'echo out; echo err >&2; exit 9' },
    { copy_to: { stdout } },
  );
  expect(await supervisor.finished(process.process_id)).toMatchObject({ exit_code: 9 });
  expect(texts.join('').split('\n').sort()).toEqual(['', 'err', 'out']);
});

test('a target that takes nothing holds up neither the process nor its end for ever', async () => {
  const { supervisor } = await start();
  const stdout = new Writable({ highWaterMark: 1_024, write: () => {} });
  const { process } = await supervisor.spawn(
    { command: program('flood.mjs', String(20 * 1024 * 1024)) },
    { copy_to: { stdout } },
  );
  expect(await supervisor.finished(process.process_id)).toMatchObject({ exit_code: 0 });
  expect(stdout.writableLength).toBeLessThan(200 * 1024);
});

test('a target that breaks ends the copy alone', async () => {
  const { supervisor } = await start();
  const stdout = new Writable({ write: (_data, _encoding, done) => done(new Error('EPIPE')) });
  const { process } = await supervisor.spawn({ shell: 'seq 1 100000; exit 3' }, { copy_to: { stdout } });
  expect(await supervisor.finished(process.process_id)).toMatchObject({ exit_code: 3 });
});
