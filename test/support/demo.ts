import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { styleText } from 'node:util';
import { execa, type ResultPromise } from 'execa';
import { DEFAULT_PORT } from '../../src/contract/defaults.ts';

/**
 * What `npm start` shows: a daemon that supervises a small program and watches a folder, and a receiver that
 * verifies and prints each event. Runs until Ctrl-C, SIGTERM or the end of its terminal, and leaves nothing behind.
 */
const root = fileURLToPath(new URL('../../', import.meta.url));
const sandboxd = join(root, 'dist/sandboxd.cjs');
const sandboxctl = join(root, 'dist/sandboxctl.cjs');
const heartbeat = join(root, 'fixtures/programs/heartbeat.mjs');

/** The last lines of a program's stderr, to be told where it fails. */
const STDERR_LINES = 5;

/** A process group for each program: Ctrl-C reaches this one alone, which ends them in order, however long they take. */
const IN_ORDER = {
  detached: true,
  forceKillAfterDelay: false,
  stdin: 'ignore',
  buffer: false,
  reject: false,
} as const;

interface Program {
  name: string;
  child: ResultPromise<typeof IN_ORDER>;
  ended: Promise<string>;
  stderr: string[];
}

const states = join(root, '.state');
mkdirSync(states, { recursive: true, mode: 0o700 });
const folder = mkdtempSync(join(states, 'demo-'));
const programs: Program[] = [];
let stopping = false;

function start(name: string, script: string, args: string[], env: NodeJS.ProcessEnv = {}): Program {
  const child = execa(process.execPath, ['--disable-sigusr1', script, ...args], { ...IN_ORDER, env });
  const ended = child.then(({ signal, exitCode }) =>
    signal ? `by ${signal}` : `with exit code ${exitCode}`,
  );
  const program: Program = { name, child, ended, stderr: [] };
  onLine(child.stderr, (line) =>
    program.stderr.splice(0, program.stderr.length, ...program.stderr.slice(1 - STDERR_LINES), line),
  );
  programs.push(program);
  void program.ended.then((how) => {
    if (!stopping) void stop(1, [`${name} ended by itself, ${how}`, ...program.stderr].join('\n  '));
  });
  return program;
}

function onLine(stream: Readable, take: (line: string) => void): void {
  createInterface({ input: stream }).on('line', take);
}

/** The first value that `find` gives for a line of the stream. */
function found(stream: Readable, find: (line: string) => string | undefined): Promise<string> {
  return new Promise((resolve) => {
    onLine(stream, (line) => {
      const value = find(line);
      if (value) resolve(value);
    });
  });
}

/** The address in the daemon's log line that tells it. */
function listeningUrl(line: string): string | undefined {
  if (!line.startsWith('{')) return undefined;
  const { msg, url } = JSON.parse(line) as { msg?: string; url?: string };
  return msg === 'listening' ? url : undefined;
}

/** Ends what runs, the daemon first, so that its last events still arrive. */
async function stop(exit_code: number, message?: string): Promise<void> {
  if (stopping) return;
  stopping = true;
  process.exitCode = exit_code;
  if (message) console.error(`${styleText('red', 'failed:')} ${message}`);
  for (const { child, ended } of programs.toReversed()) {
    child.kill('SIGTERM');
    await ended;
  }
  rmSync(folder, { recursive: true, force: true });
}

/** The first signal ends everything in order; the second does not wait. */
function interrupt(): void {
  if (!stopping) {
    console.log('\nstopping');
    void stop(0);
    return;
  }
  for (const { child } of programs) child.kill('SIGKILL');
}

async function isFree(port: number, host: string): Promise<boolean> {
  const server = createServer().listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    // Where there is no IPv6 nobody can have taken the port there.
    return (error as NodeJS.ErrnoException).code !== 'EADDRINUSE';
  }
  server.close();
  await once(server, 'close');
  return true;
}

async function choosePort(): Promise<number> {
  if ((await isFree(DEFAULT_PORT, '127.0.0.1')) && (await isFree(DEFAULT_PORT, '::1'))) return DEFAULT_PORT;
  console.log(`Port ${DEFAULT_PORT} is taken here: the daemon uses another one.`);
  return 0;
}

async function main(): Promise<void> {
  for (const script of [sandboxd, sandboxctl]) {
    if (!existsSync(script)) return stop(1, `${script} is missing: npm run build makes it`);
  }
  const secret_file = join(folder, 'secret');
  writeFileSync(secret_file, randomBytes(32).toString('hex'), { mode: 0o600 });
  const watched = join(folder, 'watched');
  mkdirSync(watched);
  const state_dir = join(folder, 'state');

  const in_colour = process.stdout.isTTY && !process.env.NO_COLOR;
  const listener = start(
    'sandboxctl listen',
    sandboxctl,
    ['listen', '--port', '0', '--secret-file', secret_file],
    in_colour ? { FORCE_COLOR: '1' } : {},
  );
  const receiver_url = found(listener.child.stdout, (line) => /^listening on (\S+)$/.exec(line)?.[1]);
  onLine(listener.child.stdout, (line) => console.log(line));
  onLine(listener.child.stderr, (line) => console.log(line));

  const port = String(await choosePort());
  const webhook_url = await receiver_url;
  if (stopping) return;

  const daemon = start('sandboxd', sandboxd, [
    ...['--webhook-url', webhook_url, '--webhook-secret-file', secret_file],
    ...['--watch-dir', watched, '--state-dir', state_dir, '--port', port],
    ...['--sandbox-id', 'sbx_demo', '--team-id', 'team_demo'],
    ...['--', process.execPath, heartbeat],
  ]);
  onLine(daemon.child.stdout, (line) => console.log(styleText('dim', `the program prints: ${line}`)));
  const ready = found(listener.child.stdout, (line) => /sandbox\.ready/.exec(line)?.[0]);
  const url = await found(daemon.child.stderr, listeningUrl);
  await ready;
  const options = `--url ${url} --token-file ${join(state_dir, 'control-token')}`;
  console.log(`
The daemon runs at ${url}. In another terminal, type:

  curl -d '{"payload":{"hello":"world"}}' -H 'Content-Type: application/json' ${url}/api/v1/webhook/publish
  touch ${join(watched, 'a-file')}
  ${sandboxctl} deliveries ${options}

Each event is printed here by the receiver, once it has verified it. Ctrl-C ends.
`);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt);
// Nobody looks any more.
process.stdout.on('error', () => void stop(0));
main().catch((error: Error) => stop(1, error.message));
