import { truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ChangeSignal } from '../../../src/process/change-signal.ts';
import { OutputLog } from '../../../src/process/output/output-log.ts';
import { outputTail } from '../../../src/process/output/output-tail.ts';
import { scratchFolder } from '../../support/scratch.ts';

const MIB = 1024 * 1024;

async function logsOf(out: string | Buffer, err: string | Buffer) {
  const folder = scratchFolder();
  const changes = new ChangeSignal();
  const stdout = OutputLog.create(folder, 'stdout', changes);
  const stderr = OutputLog.create(folder, 'stderr', changes);
  for (const [log, text] of [[stdout, out] as const, [stderr, err] as const]) {
    for (let at = 0; at < text.length; at += MIB) log.append(Buffer.from(text.slice(at, at + MIB)));
    await log.flush();
  }
  return { folder, logs: { stdout, stderr } };
}

test('the tail of each stream says whether there was more before it', async () => {
  const { logs } = await logsOf('0123456789', 'abc');
  const tail = await outputTail(logs, 4);
  expect([String(tail.stdout), String(tail.stderr)]).toEqual(['6789', 'abc']);
  expect([tail.stdout_truncated, tail.stderr_truncated]).toEqual([true, false]);
  const all = await outputTail(logs, 10);
  expect([String(all.stdout), all.stdout_truncated]).toEqual(['0123456789', false]);
});

test('a tail across several files is one', async () => {
  const bytes = Buffer.alloc(12 * MIB, 'abcdefg');
  const { logs } = await logsOf(bytes, '');
  const { stdout, stderr, stderr_truncated } = await outputTail(logs, 6 * MIB);
  expect(stdout.equals(bytes.subarray(-6 * MIB))).toBe(true);
  expect([stderr.length, stderr_truncated]).toEqual([0, false]);
});

test('a tail of files that somebody has cut short is what can still be read', async () => {
  const { folder, logs } = await logsOf(Buffer.alloc(8 * 1024, '0123456789'), 'abc');
  await truncate(join(folder, 'stdout'), 0);
  const { stdout, stderr } = await outputTail(logs, 4 * 1024);
  expect([stdout.length, String(stderr)]).toEqual([0, 'abc']);
});
