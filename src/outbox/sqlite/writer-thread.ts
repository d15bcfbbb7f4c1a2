import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../base/clock.ts';
import { SettleWhenQuiet } from '../../base/engine/heap.ts';
import { LeftOutbox } from './files/left-outbox.ts';
import { StateLock } from './files/state-lock.ts';
import type { FromWriter, ToWriter, ToWriterThread, WriterSettings } from './messages.ts';
import { type PackedToThread, packFromWriter, transferOf, unpackToThread } from './messages-packed.ts';
import { openWriter, type Writer } from './writer.ts';

/**
 * The thread that owns the outbox's files: a sync, or a disk that hangs, blocks no other thread. Messages that arrive
 * during a commit are handled together in the next one.
 */
function run(port: MessagePort, settings: WriterSettings): void {
  const reply = (message: FromWriter) => {
    const packed = packFromWriter(message);
    port.postMessage(packed, transferOf(packed));
  };
  let writer: Writer | null = null;
  let lock: StateLock | null = null;
  let left: LeftOutbox | null = null;
  const settling = new SettleWhenQuiet(systemClock);
  const open = ({ previous, held }: Extract<ToWriterThread, { kind: 'open' }>) => {
    let is_told = false;
    const takeLock = () => {
      if (previous?.left) left ??= new LeftOutbox(settings.state_dir, previous.left);
      left?.take();
      lock ??= new StateLock(settings.state_dir, held);
      // By the first commit, where the lock is gone as well.
      is_told = !lock.isInPlace();
      return lock;
    };
    writer = openWriter(settings, reply, previous, takeLock, true);
    if (writer === null || !left?.was_gone || is_told) return;
    reply({ kind: 'mended', how: 'restored', lost_records: 0, set_aside: null });
  };
  port.on('message', (packed: PackedToThread) => {
    const first = unpackToThread(packed);
    if (first.kind === 'open') return open(first);
    const messages = [first];
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) {
      messages.push(unpackToThread(next.message) as ToWriter);
    }
    writer?.handle(messages);
    settling.noteWork(messages.reduce((sum, message) => sum + rowsOf(message), 0));
  });
  reply({ kind: 'up' });
}

function rowsOf(message: ToWriter): number {
  return message.kind === 'batch' ? message.appends.length + message.outcomes.length : 0;
}

if (parentPort) run(parentPort, workerData as WriterSettings);
