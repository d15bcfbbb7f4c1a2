import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { systemClock } from '../base/clock.ts';
import { openWriter } from './open-writer.ts';
import type { FromWriter, Handover, ToThread, ToWriter, WriterSettings } from './protocol.ts';
import { WriterLoop } from './writer-loop.ts';

/**
 * The thread that owns the outbox's files: a sync, or a disk that hangs, holds up nothing but this thread.
 * All that arrives while one commit is under way is taken together for the next.
 */
function run(port: MessagePort, settings: WriterSettings): void {
  const reply = (message: FromWriter) => port.postMessage(message);
  let loop: WriterLoop | null = null;
  const open = (handed: Handover | null) => {
    const writer = openWriter(settings, reply, handed);
    loop = writer && new WriterLoop(writer, systemClock);
  };
  port.on('message', (first: ToThread) => {
    if (first.kind === 'open') return open(first.handed);
    const messages = [first];
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) {
      messages.push(next.message as ToWriter);
    }
    loop?.handle(messages);
  });
  reply({ kind: 'up' });
}

if (parentPort) run(parentPort, workerData as WriterSettings);
