import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../base/clock.ts';
import { Engine } from '../engine.ts';
import type { CommitAnswer, TreeBatch, TreeRow, TreeStore } from '../index/tree-store.ts';
import { problemOfWatchDir } from '../problem-of-watch-dir.ts';
import type { FromWatchThread, LogMethod, ThreadSettings, ToWatchThread } from './thread-messages.ts';

/**
 * The watch, in a thread or a process of its own. Probes and scans block only that, however slow the disk is, and bursts
 * of signals are read here.
 */
const port = parentPort;

/** The thread's nice value: about a third of a processor that others use too. */
const NICE = 5;

const post = (message: FromWatchThread) => {
  if (port) port.postMessage(message);
  else process.send?.(message, undefined, undefined, () => {});
};

/** Ends this thread or process. */
function end(): void {
  if (port) port.close();
  else process.disconnect();
}

/** The store of the main thread, reached by messages. */
class MainThreadStore implements TreeStore {
  #onPage: (rows: TreeRow[] | null) => void = () => {};
  #onAnswer: (answer: CommitAnswer) => void = () => {};

  async *load(): AsyncIterable<TreeRow[]> {
    for (;;) {
      const next = new Promise<TreeRow[] | null>((resolve) => {
        this.#onPage = resolve;
      });
      post({ kind: 'load' });
      const rows = await next;
      if (rows === null) return;
      yield rows;
    }
  }

  commit(batch: TreeBatch): Promise<CommitAnswer> {
    return new Promise((resolve) => {
      this.#onAnswer = resolve;
      post({ kind: 'commit', batch, status: engine.status() });
    });
  }

  page(rows: TreeRow[] | null): void {
    this.#onPage(rows);
  }

  answer(answer: CommitAnswer): void {
    this.#onAnswer(answer);
  }
}

const store = new MainThreadStore();
const log = (method: LogMethod) => (fields: object, message: string) => {
  post({ kind: 'log', method, fields, message });
};
/** Publishers wait for an answer, but nobody waits for a file event: this thread runs at a lower priority. */
function lowerPriority(): void {
  try {
    // On Linux this affects only the calling thread.
    setPriority(0, NICE);
  } catch (error) {
    log('debug')({ err: error }, 'cannot lower the priority of the watch thread');
  }
}

/** Begins, and returns what takes the messages of the main thread. */
function begin(settings: ThreadSettings): (message: ToWatchThread) => void {
  const { watch_dir, own_paths, check } = settings;
  const problem = check === 'no' ? null : problemOfWatchDir(watch_dir, own_paths);
  if (check !== 'no') post({ kind: 'checked', problem });
  if (check === 'only' || problem !== null) {
    end();
    return () => {};
  }
  engine = new Engine({
    ...settings,
    clock: systemClock,
    log: { debug: log('debug'), info: log('info'), warn: log('warn') },
    store,
    onRest: () => post({ kind: 'status', status: engine.status() }),
  });
  void engine.start().then(() => {
    post({ kind: 'status', status: engine.status() });
    post({ kind: 'started' });
  });
  return take;
}

function take(message: ToWatchThread): void {
  switch (message.kind) {
    case 'page':
      store.page(message.rows);
      break;
    case 'answer':
      store.answer(message.answer);
      break;
    case 'reconcile':
      void engine.reconcile(message.reason).then(() => post({ kind: 'reconciled', id: message.id }));
      break;
    case 'stop':
      void engine.stop().then(() => {
        post({ kind: 'stopped' });
        end();
      });
      break;
  }
}

let engine: Engine;
lowerPriority();
if (port) port.on('message', begin(workerData as ThreadSettings));
else {
  process.once('message', ({ settings }: { settings: ThreadSettings }) => {
    process.on('message', begin(settings));
  });
  // With the daemon, whatever hangs here.
  process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
}
