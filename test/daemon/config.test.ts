import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommanderError } from 'commander';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseOptions } from '../../bin/sandboxd-options.ts';
import { StartError } from '../../src/contract/errors.ts';
import type { DaemonConfig } from '../../src/daemon/config.ts';
import { scratchFolder } from '../support/scratch.ts';

const config = (...args: string[]): DaemonConfig => parseOptions(['node', 'sandboxd', ...args], undefined);

/** The one line that is said of options that do not fit, without the library's prefix. */
function complaint(...args: string[]): string {
  try {
    config(...args);
  } catch (error) {
    if (error instanceof StartError) expect(error.exit_code).toBe(2);
    else expect(error).toBeInstanceOf(CommanderError);
    return (error as Error).message;
  }
  return 'taken';
}

beforeEach(() => {
  for (const name of Object.keys(process.env)) if (name.startsWith('SANDBOXD_')) vi.stubEnv(name, undefined);
});

afterEach(() => {
  vi.unstubAllEnvs();
});

describe('without options', () => {
  it('every option has the default of the contract', () => {
    expect(config()).toEqual({
      webhook_url: null,
      webhook_secret: '',
      webhook_retry: 'transient',
      watch_dir: null,
      watch_ignore: [],
      sandbox_id: '',
      team_id: '',
      host: 'localhost',
      port: 49_983,
      control_token_file: '/var/lib/sandboxd/control-token',
      control_socket: null,
      state_dir: '/var/lib/sandboxd',
      restart: 'never',
      keep_alive: false,
      process_user: null,
      attempt_timeout_ms: 15_000,
      delivery_window_ms: 86_400_000,
      delivery_concurrency: 16,
      outbox_max_bytes: 268_435_456,
      outbox_max_records: 1_000_000,
      shutdown_grace_ms: 10_000,
      await_init: false,
      log_level: 'info',
      command: [],
    });
  });

  it('the configuration cannot be changed', () => {
    expect(Object.isFrozen(config())).toBe(true);
  });
});

/** Every option with a value, as a flag, and what it comes to. */
const OPTIONS: [flag: string, text: string, key: keyof DaemonConfig, value: unknown][] = [
  ['--webhook-url', 'https://Example.test/a b#part', 'webhook_url', 'https://example.test/a%20b'],
  ['--watch-dir', '/work/./space/', 'watch_dir', '/work/space'],
  ['--webhook-retry', 'any', 'webhook_retry', 'any'],
  ['--watch-ignore', '*.tmp', 'watch_ignore', ['*.tmp']],
  ['--sandbox-id', 'sb-1', 'sandbox_id', 'sb-1'],
  ['--team-id', 'team-1', 'team_id', 'team-1'],
  ['--host', '0.0.0.0', 'host', '0.0.0.0'],
  ['--port', '0', 'port', 0],
  ['--control-token-file', '/run/token', 'control_token_file', '/run/token'],
  ['--control-socket', '/run/control', 'control_socket', '/run/control'],
  ['--state-dir', '/tmp/../state', 'state_dir', '/state'],
  ['--restart', 'on-failure', 'restart', 'on-failure'],
  ['--process-user', 'nobody', 'process_user', 'nobody'],
  ['--attempt-timeout-ms', '500', 'attempt_timeout_ms', 500],
  ['--delivery-window-ms', '60000', 'delivery_window_ms', 60_000],
  ['--delivery-concurrency', '1', 'delivery_concurrency', 1],
  ['--outbox-max-bytes', '1000', 'outbox_max_bytes', 1_000],
  ['--outbox-max-records', '10', 'outbox_max_records', 10],
  ['--shutdown-grace-ms', '0', 'shutdown_grace_ms', 0],
  ['--log-level', 'debug', 'log_level', 'debug'],
];

const variable = (flag: string) => `SANDBOXD_${flag.slice(2).replaceAll('-', '_').toUpperCase()}`;

describe.each(OPTIONS)('%s', (flag, text, key, value) => {
  it('is read from the command line, with a space or =', () => {
    expect(config(flag, text)[key]).toEqual(value);
    expect(config(`${flag}=${text}`)[key]).toEqual(value);
  });

  it('is read from the environment', () => {
    vi.stubEnv(variable(flag), text);
    expect(config()[key]).toEqual(value);
  });

  it('is refused by its name without a value', () => {
    expect(complaint(flag)).toContain(flag);
  });
});

describe('a flag', () => {
  it('takes precedence over the environment', () => {
    vi.stubEnv('SANDBOXD_PORT', '1');
    vi.stubEnv('SANDBOXD_KEEP_ALIVE', 'false');
    expect(config('--port', '2').port).toBe(2);
    expect(config('--keep-alive', '--', 'true').keep_alive).toBe(true);
  });

  it('for --watch-ignore may be repeated; its variable has one glob per line', () => {
    expect(config('--watch-ignore', 'a', '--watch-ignore', 'b').watch_ignore).toEqual(['a', 'b']);
    vi.stubEnv('SANDBOXD_WATCH_IGNORE', 'c\nd\n');
    expect(config().watch_ignore).toEqual(['c', 'd']);
  });
});

describe.each([
  ['--keep-alive', 'keep_alive', ['--', 'true']],
  ['--await-init', 'await_init', []],
] as const)('the switch %s', (flag, key, rest) => {
  it('is on if it is given', () => {
    expect(config(flag, ...rest)[key]).toBe(true);
    expect(config(...rest)[key]).toBe(false);
  });

  it.each([
    ['true', true],
    ['1', true],
    ['YES', true],
    ['on', true],
    ['false', false],
    ['0', false],
    ['no', false],
    ['OFF', false],
    ['', false],
  ])('follows the word %j of its variable', (word, expected) => {
    vi.stubEnv(variable(flag), word);
    expect(config(...rest)[key]).toBe(expected);
  });

  it('refuses any other word in its variable', () => {
    vi.stubEnv(variable(flag), 'perhaps');
    expect(complaint(...rest)).toMatch(new RegExp(`${flag}.*perhaps.*must be true or false`));
  });
});

describe('an invalid option is refused with its name and what is accepted', () => {
  it.each<[string[], RegExp]>([
    [['--webhook-url', 'nonsense'], /--webhook-url must be an http or https URL/],
    [['--webhook-url', 'ftp://example.test/'], /--webhook-url must be an http or https URL/],
    [['--webhook-url', 'file:///etc/passwd'], /--webhook-url must be an http or https URL/],
    [['--webhook-url', 'http://user:pw@example.test/'], /--webhook-url must not contain credentials/],
    [['--webhook-secret-file', '/does/not/exist'], /--webhook-secret-file cannot be read/],
    [['--watch-dir', 'relative'], /--watch-dir must be an absolute path/],
    [['--sandbox-id', 'has space'], /--sandbox-id must be up to 256 visible ASCII characters/],
    [['--sandbox-id', 'ü'], /--sandbox-id must be up to 256 visible ASCII characters/],
    [['--team-id', 'x'.repeat(257)], /--team-id must be up to 256/],
    [['--team-id', 'a\r\nX-Header: b'], /--team-id must be/],
    [['--host', ''], /--host.*must not be empty/],
    [['--port', '65536'], /--port.*integer from 0 to 65535/],
    [['--port', '-1'], /--port.*integer from 0 to 65535/],
    [['--port', '80x'], /--port.*integer/],
    [['--port', '1e3'], /--port.*integer/],
    [['--port', ''], /--port.*integer/],
    [['--state-dir', ''], /--state-dir.*must not be empty/],
    [['--restart', 'sometimes'], /--restart.*never, on-failure, always/],
    [['--attempt-timeout-ms', '0'], /--attempt-timeout-ms.*integer from 1/],
    [['--delivery-window-ms', '1.5'], /--delivery-window-ms.*integer from 1/],
    [['--delivery-concurrency', '0'], /--delivery-concurrency.*integer from 1 to 1024/],
    [['--outbox-max-bytes', '-5'], /--outbox-max-bytes.*integer of at least 1/],
    [['--outbox-max-records', 'many'], /--outbox-max-records.*integer from 1/],
    [['--shutdown-grace-ms', '10s'], /--shutdown-grace-ms.*integer from 0/],
    [['--log-level', 'loud'], /--log-level.*trace, debug, info/],
    [['--keep-alive'], /--keep-alive requires a main command/],
    [['--unknown'], /--unknown/],
    [['sleep', '1'], /sleep is not an option; put a main command after --/],
    [['--'], /-- must be followed by a command/],
    [['--await-init', '--webhook-url', 'http://a.test/'], /--webhook-url is not accepted with --await-init/],
    [['--await-init', '--sandbox-id', 'a'], /--sandbox-id is not accepted with --await-init/],
    [
      ['--webhook-secret', 'a', '--webhook-secret-file', '/dev/null'],
      /--webhook-secret-file is not accepted/,
    ],
  ])('%j', (args, message) => {
    expect(complaint(...args)).toMatch(message);
    expect(complaint(...args)).not.toContain('\n');
  });

  it('also if it comes from the environment', () => {
    vi.stubEnv('SANDBOXD_DELIVERY_CONCURRENCY', 'lots');
    expect(complaint()).toMatch(/--delivery-concurrency.*SANDBOXD_DELIVERY_CONCURRENCY.*integer/);
  });
});

describe('the webhook secret', () => {
  it('is read from the file, without one trailing newline', () => {
    const path = join(scratchFolder(), 'secret');
    for (const [content, secret] of [
      ['made for this test', 'made for this test'],
      ['made for this test\n', 'made for this test'],
      ['made for this test\r\n', 'made for this test'],
      ['two\n\n', 'two\n'],
      [' with space ', ' with space '],
      ['', ''],
    ] as const) {
      writeFileSync(path, content);
      expect(config('--webhook-secret-file', path).webhook_secret).toBe(secret);
    }
  });

  it('is the value of the option, or else the one taken from the environment', () => {
    expect(config('--webhook-secret', 'flag').webhook_secret).toBe('flag');
    expect(parseOptions(['node', 'sandboxd'], 'from env').webhook_secret).toBe('from env');
    expect(parseOptions(['node', 'sandboxd', '--webhook-secret=flag'], 'from env').webhook_secret).toBe(
      'flag',
    );
  });
});

describe('the main command', () => {
  it('is everything after --, including options and a further --', () => {
    expect(config('--port', '0', '--', 'sh', '-c', 'exit 3', '--', '--port', 'x').command).toEqual([
      'sh',
      '-c',
      'exit 3',
      '--',
      '--port',
      'x',
    ]);
  });
});

describe('NODE_TLS_REJECT_UNAUTHORIZED=0', () => {
  it('refuses the start', () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    expect(() => config()).toThrow(/NODE_TLS_REJECT_UNAUTHORIZED=0/);
  });
});
