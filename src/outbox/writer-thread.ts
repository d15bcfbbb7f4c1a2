import { join } from 'node:path';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { systemClock } from '../base/clock.ts';
import { StartError } from '../contract/errors.ts';
import { HighWater } from './high-water.ts';
import type { FromWriter, ToWriter, WriterSettings } from './protocol.ts';
import { SqliteStore } from './sqlite-store.ts';
import { lockStateDir, openOutbox, prepareStateDir } from './state-files.ts';
import { Writer } from './writer.ts';

/** How long until outcomes that could not be kept are tried again. */
const RETRY_MS = 1_000;

/**
 * The thread that owns the outbox's files: a sync, or a disk that hangs, holds up nothing but this thread.
 * All that arrives while one commit is under way is taken together for the next.
 */
function run(port: MessagePort, settings: WriterSettings): void {
  const reply = (message: FromWriter) => port.postMessage(message);
  let writer: Writer;
  try {
    writer = open(settings, reply);
  } catch (error) {
    const message = (error as Error).message;
    const where = error instanceof StartError ? '' : `state directory ${settings.state_dir}: `;
    reply({ kind: 'refused', message: where + message });
    return;
  }
  let retry: NodeJS.Timeout | undefined;
  const handle = (messages: ToWriter[]) => {
    clearTimeout(retry);
    writer.handle(messages);
    if (writer.has_unrecorded) retry = setTimeout(() => handle([]), RETRY_MS);
  };
  port.on('message', (first: ToWriter) => {
    const messages = [first];
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) {
      messages.push(next.message as ToWriter);
    }
    handle(messages);
  });
}

function open(settings: WriterSettings, reply: (message: FromWriter) => void): Writer {
  const { state_dir, limits } = settings;
  prepareStateDir(state_dir);
  const lock = lockStateDir(state_dir);
  const { db, set_aside } = openOutbox(state_dir);
  const store = new SqliteStore(db, systemClock, limits);
  const high_water = new HighWater(join(state_dir, 'high-water'));
  reply({ kind: 'opened', offset_ms: store.offset_ms, counts: store.counts() });
  return new Writer({ db, lock, high_water, set_aside }, store, systemClock, reply);
}

if (parentPort) run(parentPort, workerData as WriterSettings);
