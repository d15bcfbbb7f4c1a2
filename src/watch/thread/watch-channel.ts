import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { NODE_FLAGS } from '../../base/engine/flags.ts';
import { startHelper } from '../../base/linux/helper-process.ts';
import { lowerPriorityOf } from '../../base/linux/priority.ts';
import { HEAPS_VARIABLE } from '../../base/node-variables.ts';
import type { FromWatchThread, ThreadSettings, ToWatchThread } from './thread-messages.ts';

/** What comes from the other end. */
export interface WatchChannelHooks {
  onMessage: (message: FromWatchThread) => void;
  /** Called once. */
  onEnd: (error: Error) => void;
}

/** The way to where a watch engine runs. */
export interface WatchChannel {
  post(message: ToWatchThread): void;
  /** Ends the other end, without waiting for it. Idempotent. */
  end(): void;
}

/** Starts a watch engine in a thread of this process. One that hangs in a file system keeps the process. */
export function watchInThread(
  settings: ThreadSettings,
  { onMessage, onEnd }: WatchChannelHooks,
): WatchChannel {
  const worker = new Worker(programUrl(), {
    workerData: settings,
    // The watch takes no settings from the environment, but chokidar would.
    env: {},
    resourceLimits: { maxYoungGenerationSizeMb: 8 },
  });
  worker.on('message', onMessage);
  worker.on('error', onEnd);
  worker.on('exit', (code) => onEnd(new Error(`the watch thread exited with code ${code}`)));
  return {
    post: (message) => worker.postMessage(message),
    end: () => void worker.terminate(),
  };
}

/** Starts a watch engine in a process of its own, which costs no more memory, and can be left behind if it hangs. */
export function watchInProcess(
  settings: ThreadSettings,
  { onMessage, onEnd }: WatchChannelHooks,
): WatchChannel {
  const child = startHelper([process.execPath, ...NODE_FLAGS, fileURLToPath(programUrl())], {
    env: { [HEAPS_VARIABLE]: '1' },
    cwd: '/',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
  });
  lowerPriorityOf(child.pid);
  child.on('message', (message) => onMessage(message as FromWatchThread));
  child.on('error', onEnd);
  child.on('exit', (code, signal) => onEnd(new Error(`the watch process exited with ${code ?? signal}`)));
  child.unref();
  child.channel?.unref();
  const post = (message: ToWatchThread | { kind: 'settings'; settings: ThreadSettings }) =>
    // One that has ended reports that by itself.
    void child.send(message, () => {});
  post({ kind: 'settings', settings });
  return { post, end: () => void child.kill('SIGKILL') };
}

/** In a bundle, the program lies beside it. */
function programUrl(): URL {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'cjs';
  return new URL(`./watch-thread.${extension}`, import.meta.url);
}
