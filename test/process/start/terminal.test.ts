import { expect, test } from 'vitest';
import type { Supervisor } from '../../../src/process/supervisor.ts';
import { eventually } from '../../support/eventually.ts';
import { outputOf, start } from '../../support/process/harness.ts';

async function type(supervisor: Supervisor, process_id: string, text: string): Promise<void> {
  await supervisor.writeStdin(process_id, { data: [Buffer.from(text)] });
}

async function screen(supervisor: Supervisor, process_id: string, text: string | RegExp): Promise<string> {
  return eventually(async () => {
    const { stdout } = await outputOf(supervisor, process_id);
    expect(stdout).toMatch(text);
    return stdout;
  });
}

test('bash at a terminal shows its prompt, follows a resize, and Ctrl-C ends what runs in it', async () => {
  const { supervisor, events } = await start();
  const { process } = await supervisor.spawn({
    command: ['bash', '--norc', '-i'],
    env: { PS1: 'ready> ' },
    pty: { cols: 80, rows: 24 },
  });
  const { process_id } = process;
  await screen(supervisor, process_id, /ready> /);
  await type(supervisor, process_id, 'stty size; tty\n');
  await screen(supervisor, process_id, /24 80\r\n\/dev\/pts/);
  supervisor.resize(process_id, { cols: 132, rows: 50 });
  await type(supervisor, process_id, 'stty size\n');
  await screen(supervisor, process_id, /50 132/);
  await type(supervisor, process_id, 'sleep 1000; echo "got $?"\n');
  await eventually(async () => expect((await supervisor.get(process_id)).resource_usage.processes).toBe(2));
  await type(supervisor, process_id, '\x03');
  await type(supervisor, process_id, 'echo "still ""here"\n');
  await screen(supervisor, process_id, /still here/);
  await type(supervisor, process_id, 'exit 5\n');
  expect(await supervisor.finished(process_id)).toMatchObject({ state: 'exited', exit_code: 5 });
  await eventually(() => expect(events).toHaveLength(2));
  expect(events[1]?.event_type).toBe('process.exited');
});

test('Ctrl-C typed at a terminal is a requested signal: what it ends has exited', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    shell: 'echo on; exec sleep 1000',
    pty: { cols: 80, rows: 24 },
  });
  await screen(supervisor, process.process_id, /on/);
  await type(supervisor, process.process_id, '\x03');
  expect(await supervisor.finished(process.process_id)).toMatchObject({
    state: 'exited',
    exit_code: 130,
    signal: 'SIGINT',
  });
});

test('a process that closes its terminal before it ends is not hung up', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    shell: 'echo on; exec <&- >&- 2>&-; sleep 0.2; exit 7',
    pty: { cols: 80, rows: 24 },
  });
  expect(await supervisor.finished(process.process_id)).toMatchObject({ state: 'exited', exit_code: 7 });
  expect((await outputOf(supervisor, process.process_id)).stdout).toBe('on\r\n');
});

test('what a terminal printed last is kept, and a surviving descendant does not delay the end', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    shell: 'sleep 1000 & seq 1 5000; echo last',
    pty: { cols: 80, rows: 24 },
  });
  const ended = await supervisor.finished(process.process_id);
  expect(ended.exit_code).toBe(0);
  expect((await outputOf(supervisor, process.process_id)).stdout.endsWith('5000\r\nlast\r\n')).toBe(true);
});

test.each([
  ['of nothing', '', ''],
  ['of a line', '', 'one\n'],
  ['in the middle of a line', '', 'one'],
  ['under another key', 'stty eof ^X; ', 'one'],
])('an end of stdin %s is read once by a process at a terminal', async (_, setup, typed) => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    // The second reader has a terminal in which no end waits.
    shell: `${setup}stty -echo; echo on; cat; echo "<ended>"; read line; echo "<$line>"`,
    pty: { cols: 80, rows: 24 },
  });
  const { process_id } = process;
  await screen(supervisor, process_id, /on\r\n/);
  await supervisor.writeStdin(process_id, { data: [Buffer.from(typed)], end: true });
  await screen(supervisor, process_id, /<ended>/);
  await type(supervisor, process_id, 'more\n');
  await supervisor.finished(process_id);
  const { stdout } = await outputOf(supervisor, process_id);
  expect(stdout.replaceAll('\r', '')).toBe(`on\n${typed}<ended>\n<more>\n`);
});

test('an end of stdin is refused by a terminal in raw mode, whose process gets what was written', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    shell: 'stty raw -echo; echo on; head -c 4; stty cooked',
    pty: { cols: 80, rows: 24 },
  });
  const { process_id } = process;
  await screen(supervisor, process_id, /on\n/);
  await expect(
    supervisor.writeStdin(process_id, { data: [Buffer.from('abc')], end: true }),
  ).rejects.toMatchObject({ code: 'conflict', details: { field: 'end', accepted: 3 } });
  await type(supervisor, process_id, '\x03');
  expect(await supervisor.finished(process_id)).toMatchObject({
    state: 'exited',
    exit_code: 0,
    signal: null,
  });
  expect((await outputOf(supervisor, process_id)).stdout).toBe('on\nabc\x03');
});

test('a process without a terminal cannot be resized', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ command: ['sleep', '1000'] });
  expect(() => supervisor.resize(process.process_id, { cols: 1, rows: 1 })).toThrow('no terminal');
});

test('other processes do not hold a terminal open', async () => {
  const { supervisor } = await start();
  const terminal = await supervisor.spawn({ command: ['cat'], pty: { cols: 80, rows: 24 } });
  const other = await supervisor.spawn({ shell: 'ls -l /proc/self/fd' });
  await supervisor.finished(other.process.process_id);
  expect((await outputOf(supervisor, other.process.process_id)).stdout).not.toMatch(/ptmx|pts/);
  await supervisor.writeStdin(terminal.process.process_id, { data: [], end: true });
  expect(await supervisor.finished(terminal.process.process_id)).toMatchObject({ exit_code: 0 });
});
