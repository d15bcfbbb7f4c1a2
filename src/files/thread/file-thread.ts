import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../base/clock.ts';
import { invalidField } from '../../contract/errors.ts';
import type { Loss } from '../archive/tree-copy.ts';
import { UploadJournal } from '../change/upload-journal.ts';
import { Files } from '../files.ts';
import type { Call, FileThreadSettings, Work } from './file-threads.ts';
import { Line } from './line.ts';

/** A thread for lists and archives: many small calls of the system, each made at once, that delay nobody else here. */
const port = parentPort;
if (!port) throw new Error('a file thread cannot run as a program');

const { own_paths, journal_folder, daemon_pid } = workerData as FileThreadSettings;
const journal = new UploadJournal(journal_folder);
const files = new Files({ clock: systemClock, own_paths, journal, daemon_pid });

/** Whoever sends a tree knows what it lacks. */
function refused({ what }: Loss): never {
  throw invalidField('body', `must not have an entry that ${what}`);
}

async function resultOf(work: Work, line: Line): Promise<unknown> {
  switch (work.verb) {
    case 'list':
      return Buffer.from(JSON.stringify(await files.list(work.request)));
    case 'pack': {
      const copy = work.is_exact ? { onLoss: null } : null;
      const pieces = await files.pack(work.path, { signal: line.gone, copy });
      line.ready();
      for await (const piece of pieces) if (!(await line.send(piece))) break;
      return null;
    }
    case 'unpack':
      return files.unpack({
        path: work.path,
        data: line.pieces(),
        copy: work.is_exact ? { is_trusted: true, onLoss: refused } : null,
        signal: line.gone,
      });
  }
}

async function run({ work, port: end }: Call): Promise<void> {
  const line = new Line(end);
  line.begun();
  parentPort?.postMessage(null);
  await resultOf(work, line).then(
    (result) => line.done(result),
    (error) => line.fail(error),
  );
}

let lists = Promise.resolve();

port.on('message', (call: Call) => {
  // One after the other: one that waits behind another that hangs is not begun, and goes to another thread.
  if (call.work.verb === 'list') lists = lists.then(() => run(call));
  else void run(call);
});
port.postMessage(null);
