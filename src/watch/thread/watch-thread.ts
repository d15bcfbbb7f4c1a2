import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../base/clock.ts';
import { Engine } from '../engine.ts';
import type { CommitAnswer, TreeBatch, TreeRow, TreeStore } from '../index/tree-store.ts';
import type { FromWatchThread, LogMethod, ThreadSettings, ToWatchThread } from './thread-messages.ts';

/**
 * The thread in which a tree is watched: observations and listings block it and nobody else, however slow the disk, and a
 * burst of signals is read here.
 */
const port = parentPort;
if (!port) throw new Error('the watch thread was started as a program');

/** The kernel's nice value: a third of the processor where all of it is wanted. */
const NICE = 5;

const post = (message: FromWatchThread) => port.postMessage(message);

/** The daemon's store, reached by messages. */
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
/** Whoever publishes waits for an answer, and nobody for a file event: this thread gives way. */
function lowerPriority(): void {
  try {
    // On Linux this is the calling thread alone.
    setPriority(0, NICE);
  } catch (error) {
    log('debug')({ err: error }, 'the watch runs at the same priority as everything else');
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
