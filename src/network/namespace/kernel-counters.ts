import { closeSync } from 'node:fs';
import { DIRECTIONS, type PerDirection } from '../directions.ts';
import { inNamespace, openFilterSocket, receive, send } from '../queue/libc.ts';
import { type CounterObject, countersRequest, readCounterObjects } from '../queue/netlink-counters.ts';
import { COUNTER_TABLE } from './texts.ts';

/** The IP packets that passed in one direction since the namespace was created, as counted by the kernel. */
export interface KernelCount {
  bytes: number;
  packets: number;
}

const RECEIVE_BYTES = 64 * 1024;

/**
 * The counters of the namespace at `path`, read without a program; null if it has none. Throws SystemError. Takes a
 * few dozen microseconds.
 */
export function readCounters(path: string): PerDirection<KernelCount> | null {
  const found = inNamespace(path, readHere);
  const counts = DIRECTIONS.map((direction) => {
    const counter = found.find(({ table, name }) => table === COUNTER_TABLE && name === direction);
    return [direction, counter && { bytes: counter.bytes, packets: counter.packets }];
  });
  return counts.every(([, count]) => count) ? Object.fromEntries(counts) : null;
}

/** The counters of this thread's namespace. */
function readHere(): CounterObject[] {
  const fd = openFilterSocket(RECEIVE_BYTES);
  try {
    const request = countersRequest();
    send(fd, request, request.length);
    const message = Buffer.allocUnsafeSlow(RECEIVE_BYTES);
    const found: CounterObject[] = [];
    // The kernel writes each part of the list while the one before it is read.
    for (let length = receive(fd, message); length !== null; length = receive(fd, message))
      found.push(...readCounterObjects(message, length));
    return found;
  } finally {
    closeSync(fd);
  }
}
