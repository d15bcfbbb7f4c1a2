import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { outputOf, program, start } from '../support/process/harness.ts';

test('what is written to stdin arrives in order, and its end closes it', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ command: program('upper.mjs'), stdin: 'pipe' });
  await supervisor.writeStdin(process.process_id, { data: [Buffer.from('one '), Buffer.from('two ')] });
  await supervisor.writeStdin(process.process_id, { data: [Buffer.from('three')], end: true });
  await supervisor.finished(process.process_id);
  expect((await outputOf(supervisor, process.process_id)).stdout).toBe('ONE TWO THREE');
});

test('a repeated request skips what was taken, and a gap is a conflict that says how much was', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ command: ['cat'], stdin: 'pipe' });
  const write = (text: string, offset: number, end = false) =>
    supervisor.writeStdin(process.process_id, { data: [Buffer.from(text)], offset, end });
  await write('abc', 0);
  await write('abcdef', 0);
  await expect(write('x', 7)).rejects.toMatchObject({ code: 'conflict', details: { accepted: 6 } });
  await write('efgh', 4, true);
  await supervisor.finished(process.process_id);
  expect((await outputOf(supervisor, process.process_id)).stdout).toBe('abcdefgh');
});

test('a process that never reads holds up its writer only, and the writer is told when it ends', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ command: ['sleep', '1000'], stdin: 'pipe' });
  const { process_id } = process;
  let has_finished = false;
  const write = supervisor.writeStdin(process_id, { data: [Buffer.alloc(4 * 1024 * 1024)] }).finally(() => {
    has_finished = true;
  });
  const refused = expect(write).rejects.toMatchObject({ code: 'conflict' });
  const waiting = supervisor.writeStdin(process_id, { data: [Buffer.from('x')], end: true });
  const refused_too = expect(waiting).rejects.toMatchObject({ code: 'conflict' });
  expect((await supervisor.get(process_id)).state).toBe('running');
  expect(has_finished).toBe(false);
  await supervisor.remove(process_id);
  await Promise.all([refused, refused_too]);
});

test('a writer that leaves lets the next one go on, and what was taken stays taken', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ shell: 'read go < /dev/fd/3; cat', env: {}, stdin: 'pipe' });
  const gone = new AbortController();
  const data = Buffer.alloc(300_000, 'a');
  const write = supervisor.writeStdin(process.process_id, { data: [data], signal: gone.signal });
  gone.abort(new Error('left'));
  await expect(write).rejects.toThrow('left');
  const taken = await supervisor
    .writeStdin(process.process_id, { data: [], offset: data.length })
    .then(() => data.length)
    .catch((error) => error.details.accepted);
  expect(taken).toBeLessThan(data.length);
});

test('a process without a pipe, and one that has ended, have no stdin', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ command: ['sleep', '1000'] });
  await expect(supervisor.writeStdin(process.process_id, { data: [] })).rejects.toMatchObject({
    code: 'conflict',
  });
  const ended = await supervisor.spawn({ command: ['true'], stdin: 'pipe' });
  await supervisor.finished(ended.process.process_id);
  await eventually(async () => expect((await supervisor.get(ended.process.process_id)).state).toBe('exited'));
  await expect(supervisor.writeStdin(ended.process.process_id, { data: [] })).rejects.toMatchObject({
    code: 'conflict',
  });
});
