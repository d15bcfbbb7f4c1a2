import { get } from 'node:http';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { RunningProgram } from '../../support/running-program.ts';
import type { Operation } from './file-changes.ts';
import { nowMs } from './numbers.ts';
import { serve } from './program.ts';

export interface Stream {
  /** Of the daemon. */
  url: string;
  authorization: string;
}

export type ChangeReaderVerbs = {
  /** Starts `inotifywait` and returns when it has its watches; it ends with `end`. */
  inotifywait: (input: { dir: string }) => Promise<{ pid: number; ready_ms: number }>;
  /** Reads the daemon's event stream. */
  follow: (stream: Stream) => Promise<void>;
  /** How many changes with this operation were told since `forget`. */
  count: (operation: Operation) => number;
  /** `operation path` and when it was told first. */
  told: (input: null) => [key: string, at_ms: number][];
  forget: (input: null) => void;
  end: (input: null) => Promise<void>;
};

const INOTIFY: Record<string, Operation> = {
  CREATE: 'create',
  MODIFY: 'write',
  ATTRIB: 'chmod',
  MOVED_TO: 'rename',
  DELETE: 'remove',
};

const told = new Map<string, number>();
const counts = new Map<Operation, number>();
let watching: RunningProgram | null = null;
let leave = () => {};

function take(operation: Operation, path: string, at_ms: number): void {
  const key = `${operation} ${path}`;
  if (told.has(key)) return;
  told.set(key, at_ms);
  counts.set(operation, (counts.get(operation) ?? 0) + 1);
}

async function inotifywait({ dir }: { dir: string }): Promise<{ pid: number; ready_ms: number }> {
  const events = Object.keys(INOTIFY).join(',').toLowerCase();
  const began_ms = nowMs();
  watching = new RunningProgram(['inotifywait', '-m', '-r', '-e', events, '--format', '%e %w%f', dir]);
  createInterface({ input: watching.child.stdout as Readable }).on('line', (line) => {
    const at_ms = nowMs();
    const [, event = '', path = ''] = /^([A-Z_]+)\S* (.*)$/.exec(line) ?? [];
    const operation = INOTIFY[event];
    if (operation) take(operation, path, at_ms);
  });
  await watching.wrote(/^Watches established/m);
  return { pid: watching.pid, ready_ms: nowMs() - began_ms };
}

function follow({ url, authorization }: Stream): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = get(`${url}/api/v1/events/stream`, { headers: { authorization } }, (answer) => {
      const lines = createInterface({ input: answer });
      lines.on('line', (line) => {
        if (!line.startsWith('data: ')) return;
        const at_ms = nowMs();
        const { event_type, payload } = JSON.parse(line.slice(6));
        if (event_type === 'file.modified') take(payload.event_type, payload.path, at_ms);
      });
      // It is broken off at the end.
      lines.on('error', () => {});
      resolve();
    });
    request.once('error', reject);
    leave = () => request.destroy();
  });
}

async function end(): Promise<void> {
  leave();
  await watching?.stop();
}

serve<ChangeReaderVerbs>({
  inotifywait,
  follow,
  count: (operation) => counts.get(operation) ?? 0,
  told: () => [...told],
  forget: () => {
    told.clear();
    counts.clear();
  },
  end,
});
