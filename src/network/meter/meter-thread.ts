import { readSync } from 'node:fs';
import { setPriority } from 'node:os';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../base/clock.ts';
import { openWakeUp } from '../queue/libc.ts';
import { Meter } from './meter.ts';
import type { FromMeterThread, MeterSettings, ToMeterThread } from './thread-messages.ts';

/** The meter thread: it blocks in the kernel, not in an event loop, and is woken through a file descriptor. */
const port = parentPort;
if (!port) throw new Error('the meter thread cannot run as a program');

const { is_fail_open, heartbeat } = workerData as MeterSettings;
const beats = new Int32Array(heartbeat);
const wake_fd = openWakeUp();
const wake_count = Buffer.alloc(8);
const post = (message: FromMeterThread) => port.postMessage(message);

const meter = new Meter(
  {
    clock: systemClock,
    is_fail_open,
    requestsOf: (team_id, direction) => ({
      reserve: (bytes) => post({ kind: 'reserve', team_id, direction, bytes }),
      giveBack: (bytes) => post({ kind: 'give-back', team_id, direction, bytes }),
    }),
  },
  wake_fd,
);

/** The thread's nice value: packets wait for it, and what the sandboxes compute must not delay them. */
const NICE = -10;

function raisePriority(): void {
  try {
    // On Linux this affects only the calling thread.
    setPriority(0, NICE);
  } catch {
    // Without the right to it everything works, with longer waits on a busy node.
  }
}

/** Carries out a request and replies with the result. */
function answer(id: number, run: () => void): void {
  try {
    run();
    post({ kind: 'done', id });
  } catch (error) {
    const { message, code = null } = error as Error & { code?: string };
    post({ kind: 'failed', id, message, code });
  }
}

/** Returns whether the thread continues. */
function receive(message: ToMeterThread): boolean {
  switch (message.kind) {
    case 'attach':
      answer(message.id, () => meter.attach(message.sandbox));
      break;
    case 'detach':
      answer(message.id, () => meter.detach(message.sandbox_id, message.is_free));
      break;
    case 'limit':
      meter.limit(message.sandbox_id, message.limits);
      break;
    case 'limit-team':
      meter.limitTeam(message.team_id, message.direction, message.rate);
      break;
    case 'answer':
      meter.answer(message.team_id, message.direction, message.reservation);
      break;
    case 'stop':
      return false;
  }
  return true;
}

function receiveAll(from: NonNullable<typeof parentPort>): boolean {
  readSync(wake_fd, wake_count);
  for (let next = receiveMessageOnPort(from); next; next = receiveMessageOnPort(from)) {
    if (!receive(next.message as ToMeterThread)) return false;
  }
  return true;
}

raisePriority();
post({ kind: 'started', wake_fd });
for (let goes_on = true; goes_on; ) {
  Atomics.add(beats, 0, 1);
  if (meter.step()) goes_on = receiveAll(port);
}
meter.close();
port.close();
