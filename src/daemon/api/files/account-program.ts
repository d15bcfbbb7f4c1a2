import { once } from 'node:events';
import { fstat, readdirSync, readFileSync } from 'node:fs';
import { systemClock } from '../../../base/clock.ts';
import type { ConnectionHandle } from '../../../base/engine/node-http.ts';
import { createHttpApp } from '../../../base/http/app.ts';
import { Connections, createListener } from '../../../base/http/listener.ts';
import { serve } from '../../../base/http/serve.ts';
import type { Account } from '../../../base/linux/accounts.ts';
import { createLog } from '../../../base/log.ts';
import { FILE_ROUTES } from '../../../contract/routes/files.ts';
import { removeLeftovers, UploadJournal } from '../../../files/change/upload-journal.ts';
import { Files } from '../../../files/files.ts';
import { FileThreads } from '../../../files/thread/file-threads.ts';
import { CallsUnderWay } from './calls-under-way.ts';
import { DirectBodies, type DirectOrder } from './direct-bodies.ts';
import { fileHandlers } from './file-routes.ts';
import { WatchedTrees } from './watch/watched-trees.ts';

/** What an account's process is started with, as JSON. */
export interface AccountSettings {
  /** Null: the daemon's own, with all of its rights. */
  account: Account | null;
  own_paths: readonly string[];
  /** The account's own, in a folder that it cannot enter by itself. */
  journal_folder: string;
  socket_name: string;
  daemon_pid: number;
  /** The folder with what an earlier daemon has left, which is removed; null if this is not its task. */
  leftovers: string | null;
}

/** What it tells the daemon: whether it could start, and how it is, whenever that changes or it is asked. */
export type ProgramAnswer =
  /** Why it may not act as the account; null if it is ready. */
  | { failed: string | null }
  /** How many calls it works on although their clients have gone, and whether it has no threads for new ones. */
  | { left: number; is_full: boolean };

/** What the daemon tells it. */
export type ProgramOrder = { is_asking: true } | DirectOrder;

/** A call to the pool that takes longer waits for others that hang, in ms. */
const FULL_MS = 2_000;
/** Time to tidy up at the end, in ms. */
const END_GRACE_MS = 500;

/** Serves the file routes with the rights of one account, until its stdin ends. */
async function run(settings: AccountSettings): Promise<void> {
  const { account, own_paths, journal_folder, socket_name, daemon_pid, leftovers } = settings;
  process.umask(0o022);
  const journal = new UploadJournal(journal_folder);
  await journal.open();
  const clock = systemClock;
  const log = createLog('silent');
  const calls = new CallsUnderWay();
  const threads = new FileThreads({ clock, own_paths, journal, daemon_pid });
  const files = {
    clock,
    calls,
    own: new Files({ clock, own_paths, journal, daemon_pid }),
    threads,
    trees: new WatchedTrees({ clock, log, own_paths }),
    direct: new DirectBodies(),
  };
  const app = createHttpApp(log);
  await serve(app, FILE_ROUTES, fileHandlers((await import('./answers.ts')).answering(files)), () => ({}));
  await app.ready();
  const connections = new Connections(Number.POSITIVE_INFINITY);
  const server = createListener(app, connections);
  // By its name in the working directory, because the path of a socket may be too long.
  server.listen({ path: socket_name });
  await once(server, 'listening');
  if (account) become(account);
  const tellState = () => tellOf(calls, threads);
  calls.onLeft = tellState;
  process.on('message', (message: ProgramOrder, handle: unknown) => {
    if ('direct' in message) files.direct.take(message, handle as ConnectionHandle);
    else tellState();
  });
  process.stdin.resume().once('end', () => {
    // Not by an exit, which waits for threads that hang.
    systemClock.after(END_GRACE_MS, end);
    server.close();
    connections.close();
    void calls.whenDone().then(end);
  });
  tell({ failed: null });
  if (leftovers !== null) await removeLeftovers(leftovers).catch(() => {});
}

let asked_ms: number | null = null;

function tellOf(calls: CallsUnderWay, threads: FileThreads): void {
  const now_ms = systemClock.monotonicMs();
  const waits_ms = asked_ms === null ? 0 : now_ms - asked_ms;
  if (asked_ms === null) {
    asked_ms = now_ms;
    fstat(0, () => {
      asked_ms = null;
    });
  }
  tell({ left: calls.left, is_full: waits_ms > FULL_MS || threads.is_full });
}

function tell(answer: ProgramAnswer, done = () => {}): void {
  process.send?.(answer, undefined, undefined, done);
}

/** Gives up the daemon's rights, those of its groups and its capabilities included, for good. */
function become({ name, uid, gid }: Account): void {
  // The library's types do not know it.
  (process as NodeJS.Process & { initgroups(user: string, group: number): void }).initgroups(name, gid);
  process.setgid?.(gid);
  // Only a change from root to another user takes the capabilities of every thread.
  process.setuid?.(0);
  process.setuid?.(uid);
  if (process.getuid?.() !== uid || process.geteuid?.() !== uid) throw new Error('the rights were kept');
  for (const thread of readdirSync('/proc/self/task')) {
    const status = readFileSync(`/proc/self/task/${thread}/status`, 'latin1');
    if (/^Cap(Prm|Eff|Amb):\s*0*[1-9a-f]/m.test(status)) throw new Error('the capabilities were kept');
  }
}

function end(): void {
  process.kill(process.pid, 'SIGKILL');
}

run(JSON.parse(process.argv.at(-1) ?? '')).catch((error: Error) => {
  tell({ failed: error.message.replaceAll('\n', ' ') }, end);
});
