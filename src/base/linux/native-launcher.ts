import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { LauncherStarter, StartedLauncher } from './launcher.ts';
import { makePipe, readSoon } from './libc.ts';
import { spawnLauncher } from './posix-spawn.ts';
import { onceEnded, openReaper } from './reaper.ts';

/** `O_NONBLOCK`, of open(2). */
const WITHOUT_WAITING = 0o4000;

/** The launcher by posix_spawn(3). For the main thread alone. */
export function openNativeLauncher(): LauncherStarter {
  openReaper();
  return {
    program(args, env, [stdin, stdout, stderr]) {
      const { reader, writer } = makePipe(WITHOUT_WAITING);
      const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
      return started(spawnLauncher(args, variables, [stdin, stdout, stderr, writer]), reader, writer);
    },
    helper(args) {
      const { reader, writer } = makePipe();
      return started(
        spawnLauncher(args, [], [undefined, writer, undefined], { is_helper: true }),
        reader,
        writer,
      );
    },
  };
}

function started(pid: number | string, reader: number, writer: number): StartedLauncher | Promise<string> {
  closeSync(writer);
  if (typeof pid === 'string') {
    closeSync(reader);
    return Promise.resolve(pid);
  }
  return {
    pid,
    readSoon: (buffer, wait_us) => readSoon(reader, buffer, wait_us),
    rest: () => new Socket({ fd: reader, readable: true, writable: false }),
    close: () => closeSync(reader),
    onceEnded: (onEnded) => onceEnded(pid, onEnded),
  };
}
