import { expect, it, onTestFinished } from 'vitest';
import { commandLine } from '../../src/ctl/ps.ts';
import { run } from '../support/ctl/sandboxctl.ts';
import { StandInDaemon, succeed } from '../support/ctl/stand-in-daemon.ts';

it('shows a command as it would be typed in a shell, on one line', () => {
  expect(commandLine(['ls', '-la', 'a b', "it's", ''])).toBe("ls -la 'a b' 'it'\\''s' ''");
  expect(commandLine(['printf', 'a\nb\u001b[31m'])).not.toMatch(/\p{Cc}/u);
});

it('lists processes with name, age and restarts', async () => {
  const daemon = new StandInDaemon();
  const env = { SANDBOXD_URL: await daemon.start() };
  onTestFinished(() => daemon.stop());
  const web = {
    ...{ process_id: 'web', name: 'front\u001b[31m', pid: 7, state: 'running', command: ['npm', 'start'] },
    ...{ exit_code: null, exited_at: null, started_at: '2026-01-01T00:00:00.000Z', restart_count: 3 },
    ...{ ready: null, resource_usage: { cpu_ms: 1, memory_bytes: 1_536, processes: 2 } },
  };
  daemon.on('GET /processes', (_, response) => succeed(response, 200, { processes: [web] }));
  const [titles, row] = (await run(['ps'], env)).stdout.split('\n');
  expect(titles).toMatch(/^PROCESS_ID +PID +STATE +CODE +AGE +RESTARTS +MEMORY +NAME +COMMAND$/);
  expect(row).toMatch(/^web +7 +running +- +\d+ d +3 +1.5 KiB +front\\u001b\[31m +npm start$/);
});

it('reads every page, newest first, and lists the newest last; a page that leads to itself ends it', async () => {
  const daemon = new StandInDaemon();
  const env = { SANDBOXD_URL: await daemon.start() };
  onTestFinished(() => daemon.stop());
  const shown = (process_id: string) => ({ process_id, command: ['true'], command_truncated: false });
  daemon.on('GET /processes', ({ url }, response) => {
    const is_first = !url.includes('cursor=');
    const processes = is_first ? [shown('c'), shown('b')] : [shown('a')];
    succeed(response, 200, { processes, next_cursor: is_first ? '1-b' : null });
  });
  const { processes } = JSON.parse((await run(['ps', '--json'], env)).stdout);
  expect(processes.map(({ process_id }: { process_id: string }) => process_id)).toEqual(['a', 'b', 'c']);
  daemon.on('GET /processes', (_, response) =>
    succeed(response, 200, { processes: [shown('a')], next_cursor: '1-a' }),
  );
  const endless = await run(['ps'], env);
  expect([endless.code, endless.stderr]).toEqual([1, expect.stringContaining('invalid page')]);
});
