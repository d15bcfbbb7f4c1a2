import { stripVTControlCharacters } from 'node:util';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ReceivedEvent } from '../../../src/ctl/listen/received-event.ts';
import { eventLine } from '../../../src/ctl/terminal/event-line.ts';
import { width } from '../../../src/ctl/terminal/printable.ts';
import { pipe, screen } from '../../support/ctl/screen.ts';

function event(event_type: string, payload: Record<string, unknown>): ReceivedEvent {
  return {
    event_id: 'evt_019a2b3c-4d5e-7f60-8123-456789abcdef',
    event_type,
    timestamp: '2026-01-01T12:34:56.789Z',
    sequence: 7,
    payload,
    payload_text: JSON.stringify(payload),
  };
}

beforeEach(() => {
  vi.stubEnv('TERM', 'xterm');
  vi.stubEnv('FORCE_COLOR', undefined);
  vi.stubEnv('NO_COLOR', undefined);
  vi.stubEnv('NODE_DISABLE_COLORS', undefined);
});

/** The line as it is written. */
async function written({ out, text }: ReturnType<typeof screen>, told: ReceivedEvent, notes: string[] = []) {
  await out.line(eventLine(told, out, notes));
  return text();
}

const exited = { pid: 42, name: null, exit_code: 0, signal: null, duration_ms: 1_200, timed_out: false };
const lines: [string, Record<string, unknown>, string][] = [
  ['sandbox.ready', { http_port: 49983, version: '0.1.0', watch_dir: '/w' }, 'port 49983, watching /w'],
  ['sandbox.ready', { http_port: 1, version: '0.1.0', watch_dir: null }, 'port 1, watching nothing'],
  ['sandbox.paused', { reason: null, resource_usage: {} }, 'paused'],
  ['sandbox.resumed', { reason: 'work', paused_ms: 1_500 }, 'resumed: work after 1.5 s'],
  ['sandbox.killed', { reason: 'signal', signal: 'SIGTERM', uptime_ms: 60_000 }, 'SIGTERM after 1 min 0 s'],
  ['sandbox.deleted', { reason: 'ttl_expired', actor: null }, 'deleted: ttl_expired'],
  [
    'process.started',
    { pid: 42, name: 'job', command: ['a', 'b c'], restart_count: 2 },
    'job (pid 42) restart 2: a b c',
  ],
  ['process.exited', exited, 'pid 42 exited with 0 after 1.2 s'],
  ['process.exited', { ...exited, signal: 'SIGTERM', exit_code: 143 }, 'pid 42 ended by SIGTERM after 1.2 s'],
  [
    'process.exited',
    { ...exited, timed_out: true, signal: 'SIGKILL' },
    'pid 42 timed out, SIGKILL after 1.2 s',
  ],
  [
    'process.exited',
    { ...exited, exit_code: null, reason: 'unknown' },
    'pid 42 ended, exit code unknown after 1.2 s',
  ],
  [
    'process.crashed',
    { ...exited, signal: 'SIGSEGV', core_dumped: true },
    'pid 42 ended by SIGSEGV, core dumped after 1.2 s',
  ],
  [
    'process.crashed',
    { ...exited, reason: 'oom', signal: 'SIGKILL' },
    'pid 42 ran out of memory after 1.2 s',
  ],
  ['file.modified', { event_type: 'write', path: '/w/a' }, 'write /w/a'],
  ['file.modified', { event_type: 'rename', path: '/w/b', old_path: '/w/a' }, 'rename /w/a → /w/b'],
  ['agent.event', { step: 1 }, '{"step":1}'],
  ['another.kind', { step: 1 }, '{"step":1}'],
  ['process.exited', {}, 'pid ? exited with ? after ?'],
];

describe('the line of an event', () => {
  it.each(lines)('tells %s %j as: %s', (type, payload, summary) => {
    const line = eventLine(event(type, payload), pipe().out);
    expect(line).toBe(
      `12:34:56.789 #7    ${type.padEnd(15)} ${summary} evt_019a2b3c-4d5e-7f60-8123-456789abcdef`,
    );
  });

  it('has colours on a terminal only', async () => {
    vi.stubEnv('CI', undefined);
    const crash = event('process.crashed', exited);
    expect(await written(screen(120), crash)).toContain('\u001b[31mprocess.crashed');
    expect(await written(pipe(), crash)).not.toContain('\u001b');
  });

  it('has no colours where NO_COLOR is set', async () => {
    vi.stubEnv('NO_COLOR', '1');
    expect(await written(screen(120), event('agent.event', {}))).not.toContain('\u001b');
  });

  it('fits the terminal, its summary giving way to its id', async () => {
    const long = event('agent.event', { text: '世界'.repeat(100) });
    const shown = stripVTControlCharacters(await written(screen(120), long, ['duplicate'])).trimEnd();
    expect(width(shown)).toBeLessThanOrEqual(120);
    expect(shown).toMatch(/… \[duplicate\] evt_019a2b3c-4d5e-7f60-8123-456789abcdef$/);
  });

  it('lets no event write to the terminal as it likes', () => {
    const hostile = event('agent.event\u001b[2J', { event_type: '\u001b]0;title\u0007' });
    hostile.payload_text = '{"a":"\u009b31m"}';
    expect(eventLine(hostile, pipe().out)).not.toMatch(/\p{Cc}/u);
  });
});
