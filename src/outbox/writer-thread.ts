import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { systemClock } from '../base/clock.ts';
import { StartError } from '../contract/errors.ts';
import { OutboxFiles } from './outbox-files.ts';
import type { FromWriter, ToWriter, WriterSettings } from './protocol.ts';
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
    reply({ kind: 'refused', message: where + message, may_pass: mayPass(error) });
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

function open({ state_dir, limits }: WriterSettings, reply: (message: FromWriter) => void): Writer {
  const files = new OutboxFiles(state_dir, systemClock);
  return new Writer({ files, limits, clock: systemClock, reply });
}

/** Whether an error of a start may be over by itself: no room, or a disk that fails. */
function mayPass(error: unknown): boolean {
  return /^(SQLITE_FULL|SQLITE_IOERR|ENOSPC|EDQUOT|EFBIG|EIO)/.test((error as { code?: string }).code ?? '');
}

if (parentPort) run(parentPort, workerData as WriterSettings);
