import { closeSync } from 'node:fs';
import { DIRECTIONS, type PerDirection } from '../directions.ts';
import { inNamespace, openFilterSocket, receive, send } from '../queue/libc.ts';
import { filterRequest, HEADER_BYTES, LIST, messagesIn, REQUEST, TYPE_MASK } from '../queue/netlink.ts';
import { COUNTER_TABLE } from './texts.ts';

/** The IP packets that passed in one direction since the namespace was created, as counted by the kernel. */
export interface KernelCount {
  bytes: number;
  packets: number;
}

const RECEIVE_BYTES = 64 * 1024;

// The wire format of the packet filter's named counters (`nf_tables`); see `netlink.ts` for the byte orders.

const TABLES = 10 << 8;
const NEW_OBJECT = TABLES | 18;
const GET_OBJECT = TABLES | 19;
/** The family of tables for IPv4 and IPv6. */
const INET = 1;

const OBJECT_TABLE = 1;
const OBJECT_NAME = 2;
const OBJECT_DATA = 4;
const COUNTER_BYTES = 1;
const COUNTER_PACKETS = 2;

/** A named counter. */
interface CounterObject {
  table: string;
  name: string;
  bytes: number;
  packets: number;
}

/**
 * The counters of the namespace at `path`, read without a program; null if it has none. Throws SystemError. Takes a
 * few dozen microseconds.
 */
export function readCounters(path: string): PerDirection<KernelCount> | null {
  const found = inNamespace(path, () => readTable(COUNTER_TABLE));
  const [egress, ingress] = DIRECTIONS.map((direction) => found.get(direction));
  return egress && ingress ? { egress, ingress } : null;
}

/** The counters of a table of this thread's namespace, by their names. Throws SystemError. */
export function readTable(table: string): Map<string, KernelCount> {
  const found = readHere().filter((counter) => counter.table === table);
  return new Map(found.map(({ name, bytes, packets }) => [name, { bytes, packets }]));
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

/** The request for all named objects of this namespace's `inet` tables. */
function countersRequest(): Buffer {
  const request = filterRequest(GET_OBJECT, REQUEST | LIST, 0, Buffer.alloc(0));
  request[16] = INET;
  return request;
}

/** The counters in a message of the answer; everything else is skipped. */
function readCounterObjects(message: Buffer, length: number): CounterObject[] {
  const found: CounterObject[] = [];
  for (const { type, start, end } of messagesIn(message, length)) {
    if (type !== NEW_OBJECT) continue;
    const object = attributesIn(message.subarray(start + HEADER_BYTES, end));
    const data = attributesIn(object.get(OBJECT_DATA) ?? Buffer.alloc(0));
    const [bytes, packets] = [data.get(COUNTER_BYTES), data.get(COUNTER_PACKETS)];
    if (bytes?.length !== 8 || packets?.length !== 8) continue;
    found.push({
      table: text(object.get(OBJECT_TABLE)),
      name: text(object.get(OBJECT_NAME)),
      bytes: Number(bytes.readBigUInt64BE()),
      packets: Number(packets.readBigUInt64BE()),
    });
  }
  return found;
}

function attributesIn(bytes: Buffer): Map<number, Buffer> {
  const found = new Map<number, Buffer>();
  for (let at = 0; at + 4 <= bytes.length; ) {
    const size = bytes.readUInt16LE(at);
    if (size < 4 || at + size > bytes.length) break;
    found.set(bytes.readUInt16LE(at + 2) & TYPE_MASK, bytes.subarray(at + 4, at + size));
    at += (size + 3) & ~3;
  }
  return found;
}

/** A text ends with a zero byte. */
function text(value: Buffer | undefined): string {
  return value?.toString('utf8', 0, value.length - 1) ?? '';
}
