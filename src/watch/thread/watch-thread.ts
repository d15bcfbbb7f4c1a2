import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../base/clock.ts';
import { Engine } from '../engine.ts';
import type { CommitAnswer, TreeBatch, TreeRow, TreeStore } from '../index/tree-store.ts';
import type { FromWatchThread, LogMethod, ThreadSettings, ToWatchThread } from './thread-messages.ts';

/**
 * The watch thread. Probes and scans block only this thread, however slow the disk is, and bursts of signals are read
 * here.
 */
const port = parentPort;
if (!port) throw new Error('the watch thread cannot run as a program');

/** The thread's nice value: about a third of a processor that others use too. */
const NICE = 5;

const post = (message: FromWatchThread) => port.postMessage(message);

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

lowerPriority();
const engine = new Engine({
  ...(workerData as ThreadSettings),
  clock: systemClock,
  log: { debug: log('debug'), info: log('info'), warn: log('warn') },
  store,
  onRest: () => post({ kind: 'status', status: engine.status() }),
});

port.on('message', (message: ToWatchThread) => {
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
        port.close();
      });
      break;
  }
});

void engine.start().then(() => {
  post({ kind: 'status', status: engine.status() });
  post({ kind: 'started' });
});
