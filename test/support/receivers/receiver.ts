import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execaSync } from 'execa';
import { eventually } from '../eventually.ts';
import { freePort } from '../free-port.ts';
import { installed } from '../interop.ts';
import { succeeds } from '../run-sync.ts';
import { RunningProgram } from '../running-program.ts';

export const SECRET = 'schlüssel made for this test';

const FOLDER = fileURLToPath(new URL('../../../fixtures/receivers', import.meta.url));

/** A snippet's language: how it is found to be installed, and the command that runs the snippet. */
export interface Language {
  name: string;
  /** A command that exits 0 where the snippet can run. */
  probe: string[];
  command(port: number, scratch: string): string[];
  /** It closes the connection of a body that is cut off, without an answer. */
  is_silent?: boolean;
}

const PYTHON = installed('python');

export const LANGUAGES: Language[] = [
  {
    name: 'Node',
    probe: [process.execPath, '--version'],
    command: () => [process.execPath, 'node.mjs'],
  },
  { name: 'Python', probe: ['python3', '--version'], command: () => ['python3', 'python.py'] },
  {
    name: 'Python with Flask',
    probe: [PYTHON, '-c', 'import flask, standardwebhooks'],
    command: (port) => [PYTHON, '-m', 'flask', '--app', 'flask_app', 'run', '--port', String(port)],
  },
  {
    name: 'Python with FastAPI',
    probe: [PYTHON, '-c', 'import fastapi, uvicorn, standardwebhooks'],
    command: (port) => [
      PYTHON,
      '-m',
      'uvicorn',
      'fastapi_app:app',
      '--no-access-log',
      '--port',
      String(port),
    ],
    is_silent: true,
  },
  {
    name: 'Go',
    probe: ['go', 'version'],
    command: (_, scratch) => {
      const program = join(scratch, 'receiver');
      execaSync('go', ['build', '-o', program, 'go/main.go'], { cwd: FOLDER });
      return [program];
    },
  },
  { name: 'Ruby', probe: ['ruby', '-rwebrick', '-e', ''], command: () => ['ruby', 'ruby.rb'] },
  {
    name: 'PHP',
    probe: ['php', '--version'],
    command: (port) => ['php', '-S', `127.0.0.1:${port}`, 'php.php'],
    is_silent: true,
  },
  { name: 'Java', probe: ['javac', '-version'], command: () => ['java', 'Receiver.java'] },
];

export function isInstalled(language: Language): boolean {
  return succeeds(...language.probe);
}

/** A running snippet: `url` to send to, `printed` what it has recorded so far. */
export interface Receiver {
  port: number;
  url: string;
  printed(): string;
  stop(): Promise<void>;
}

export async function startReceiver(language: Language, secret = SECRET): Promise<Receiver> {
  const scratch = mkdtempSync(join(tmpdir(), 'receiver-'));
  const port = await freePort();
  const program = new RunningProgram(language.command(port, scratch), {
    cwd: FOLDER,
    env: {
      ...{ PATH: process.env.PATH, TMPDIR: scratch, SIGNING_SECRET: secret, PORT: String(port) },
      ...{ LANG: 'C.UTF-8', PYTHONDONTWRITEBYTECODE: '1' },
    },
    extendEnv: false,
    stderr: 'ignore',
  });
  await eventually(() => accepts(program, port), { timeout: 60_000, interval: 20 });
  return {
    port,
    url: `http://127.0.0.1:${port}/`,
    printed: () => program.stdout,
    async stop() {
      await program.stop();
      rmSync(scratch, { recursive: true });
    },
  };
}

function accepts(program: RunningProgram, port: number): Promise<void> {
  if (!program.is_running) throw new Error(`it ended with ${program.child.exitCode}`);
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
      .on('connect', () => resolve(void socket.destroy()))
      .on('error', reject);
  });
}
