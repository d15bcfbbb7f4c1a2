import { once } from 'node:events';
import { existsSync, renameSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads';
import { sleep, workingClock } from '../../../base/clock.ts';
import { loadStartProgram } from '../../../base/start-program.ts';
import { seccompFilter } from '../../seccomp/filter.ts';
import { become, dropPrivileges } from './kernel-calls.ts';
import { RootOverlay } from './root-overlay.ts';
import { type RootTask, rootTask } from './root-task.ts';

const POLL_MS = 5;
const SOCKET_MODE = 0o600;

/**
 * The first program of a sandbox whose root persists. The daemon is started and linked on the image's own root, before
 * anything that a sandbox has written can be found: with a library of a fork's parent it would be the parent's. Only
 * then the root with the sandbox's changes takes its place, and what is left of this program is the init that reaps.
 */
async function run(): Promise<void> {
  const task = rootTask(process.argv.slice(2));
  while (task.wait_for !== null && !existsSync(task.wait_for)) await sleep(workingClock, POLL_MS);
  const daemon = await startDaemon(task);
  const overlay = new RootOverlay(task.root, task.own);
  overlay.prepare();
  while (!isListening(task.early_socket)) {
    if (daemon.exit_code !== null) process.exit(daemon.exit_code);
    await sleep(workingClock, POLL_MS);
  }
  overlay.enter(process.cwd());
  renameSync(task.early_socket, task.socket);
  dropPrivileges(systemCalls());
  become(join(dirname(process.execPath), 'init'), [String(daemon.pid)]);
}

/** Capabilities are a thread's: the daemon is started by one that has none. */
async function startDaemon({ command }: RootTask): Promise<{ pid: number; exit_code: number | null }> {
  const starter = new Worker(process.argv[1] as string, { workerData: command });
  const [pid] = (await once(starter, 'message')) as [number];
  const daemon = { pid, exit_code: null as number | null };
  starter.on('message', (code: number) => {
    daemon.exit_code = code;
  });
  return daemon;
}

/** In the thread that starts the daemon: tells its process id, and its exit code if it ends. */
async function start(command: string[], port: MessagePort): Promise<void> {
  const startProgram = await loadStartProgram();
  dropPrivileges(systemCalls());
  const stdio = ['inherit', 'inherit', 'inherit'] as const;
  const { child, ended } = startProgram(command, { env: environment(), stdio });
  if (child.pid !== undefined) port.postMessage(child.pid);
  const { code, refusal } = await ended;
  if (refusal !== null) throw new Error(`${command[0]} cannot be started: ${refusal}`);
  port.postMessage(code ?? 1);
}

/** What the cluster tells every container is nothing to a sandbox. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('KUBERNETES_')));
}

function systemCalls(): Buffer {
  const filter = seccompFilter(process.arch);
  if (filter === null) throw new Error(`there is no filter of system calls for ${process.arch}`);
  return filter;
}

/** A socket has its name before anything listens on it; the daemon sets the mode once it does. */
function isListening(socket: string): boolean {
  const stat = statSync(socket, { throwIfNoEntry: false });
  return stat?.isSocket() === true && (stat.mode & 0o777) === SOCKET_MODE;
}

if (parentPort === null) {
  run().catch((error: Error) => {
    process.stderr.write(`The root cannot be made persistent on this node: ${error.message}\n`);
    process.exit(1);
  });
} else {
  void start(workerData as string[], parentPort);
}
