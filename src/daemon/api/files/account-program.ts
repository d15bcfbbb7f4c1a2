import { once } from 'node:events';
import { systemClock } from '../../../base/clock.ts';
import { createHttpApp } from '../../../base/http/app.ts';
import { Connections, createListener } from '../../../base/http/listener.ts';
import type { Account } from '../../../base/linux/accounts.ts';
import { createLog } from '../../../base/log.ts';
import { UploadJournal } from '../../../files/change/upload-journal.ts';
import { Files } from '../../../files/files.ts';
import { FileThreads } from '../../../files/thread/file-threads.ts';
import type { AccountSettings } from './account-process.ts';
import { registerFileRoutes } from './file-routes.ts';
import { Transfers } from './transfers.ts';
import { WatchedTrees } from './watch/watched-trees.ts';

/** Serves the file routes with the rights of one account, until its stdin ends. */
async function run({ account, own_paths, journal_folder }: AccountSettings): Promise<void> {
  process.umask(0o022);
  const journal = new UploadJournal(journal_folder);
  await journal.open();
  const clock = systemClock;
  const log = createLog('silent');
  const service = {
    clock,
    transfers: new Transfers(),
    own: new Files({ clock, own_paths, journal }),
    threads: new FileThreads({ clock, own_paths, journal }),
    trees: new WatchedTrees({ clock, log, own_paths }),
    processOf: async () => null,
  };
  const app = createHttpApp(log);
  await registerFileRoutes(app, { state: 'running', files: async () => service });
  await app.ready();
  const server = createListener(app, new Connections(), { one_request: true });
  // By its name in the working directory, because the path of a socket may be too long.
  server.listen({ path: `${account.uid}.sock` });
  await once(server, 'listening');
  become(account);
  process.stdout.write('ready\n');
}

/** Gives up the daemon's rights, those of its groups included, for good. */
function become({ name, uid, gid }: Account): void {
  // The library's types do not know it.
  (process as NodeJS.Process & { initgroups(user: string, group: number): void }).initgroups(name, gid);
  process.setgid?.(gid);
  process.setuid?.(uid);
  if (process.getuid?.() !== uid || process.geteuid?.() !== uid) throw new Error('the rights were kept');
}

process.stdin.resume().once('end', () => process.exit(0));
run(JSON.parse(process.argv.at(-1) ?? '')).catch((error: Error) => {
  process.stdout.write(`${error.message.replaceAll('\n', ' ')}\n`);
  process.exitCode = 1;
  process.stdin.destroy();
});
