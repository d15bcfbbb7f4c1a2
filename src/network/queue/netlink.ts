/**
 * The wire format of the kernel's packet queues (`nfnetlink_queue`), and what all parts of the packet filter have in
 * common. Headers are in the machine's byte order, little-endian on x64 and arm64, all other fields in network order.
 */

/** The size of a verdict as a message. */
export const VERDICT_BYTES = 32;

/** The header of every message of the packet filter. */
export const HEADER_BYTES = 20;
const SUBSYSTEM = 3 << 8;
const PACKET = SUBSYSTEM;
const VERDICT = SUBSYSTEM | 1;
const CONFIG = SUBSYSTEM | 2;
const ERROR = 2;

/** The flags of a request, of one that is to be acknowledged, and of one that lists. */
export const REQUEST = 1;
/** See REQUEST. */
export const ACKNOWLEDGE = 4;
/** See REQUEST. */
export const LIST = 0x300;

const ATTRIBUTE_PACKET = 1;
const ATTRIBUTE_VERDICT = 2;
const ATTRIBUTE_PAYLOAD = 10;
const ATTRIBUTE_FULL_LENGTH = 13;
/** The two highest bits of an attribute's type are flags. */
export const TYPE_MASK = 0x3fff;

const CONFIG_COMMAND = 1;
const CONFIG_PARAMETERS = 2;
const CONFIG_LENGTH_MAX = 3;
const CONFIG_MASK = 4;
const CONFIG_FLAGS = 5;

const COMMAND_BIND = 1;
const COPY_PACKET = 2;
/** Segments are queued as sent, up to 64 KiB, instead of being cut to the wire's size first. */
const FLAG_GSO = 4;
/** Lets the kernel pass what it cannot queue. Never set, and cleared if it is. */
const FLAG_FAIL_OPEN = 1;

/** The verdicts on a queued packet, as the kernel numbers them. */
export const ACCEPT = 1;
/** See ACCEPT. */
export const DROP = 0;

/** A packet that the kernel holds until it gets a verdict. */
export interface QueuedPacket {
  queue: number;
  /** Unique within its queue; increases by one with each packet. */
  id: number;
  /** The whole packet's length in bytes, from its IP header on. */
  length: number;
  /** Where its first bytes, from the IP header on, are in the message. */
  start: number;
  end: number;
}

/** How a queue is configured. */
export interface QueueSettings {
  queue: number;
  /** Whether packets that the kernel splits later come whole. */
  is_whole: boolean;
  /** The number of bytes of each packet that are copied. */
  copied_bytes: number;
  /** The number of packets that may wait for a verdict; the kernel drops any more. */
  packets_max: number;
}

/** The request that binds a queue; the kernel acknowledges it and drops the queue's packets until it is configured. */
export function bindRequest(queue: number): Buffer {
  const command = attribute(CONFIG_COMMAND, Buffer.from([COMMAND_BIND, 0, 0, 0]));
  return filterRequest(CONFIG, REQUEST | ACKNOWLEDGE, queue, command);
}

/** The request that lets packets into a queue. It has no answer, because packets could arrive before it. */
export function configureRequest({ queue, is_whole, copied_bytes, packets_max }: QueueSettings): Buffer {
  const parameters = Buffer.alloc(5);
  parameters.writeUInt32BE(copied_bytes);
  parameters[4] = COPY_PACKET;
  const settings = [
    attribute(CONFIG_LENGTH_MAX, bigEndian(packets_max)),
    attribute(CONFIG_MASK, bigEndian(FLAG_GSO | FLAG_FAIL_OPEN)),
    attribute(CONFIG_FLAGS, bigEndian(is_whole ? FLAG_GSO : 0)),
    attribute(CONFIG_PARAMETERS, parameters),
  ];
  return filterRequest(CONFIG, REQUEST, queue, Buffer.concat(settings));
}

/** Writes a verdict at `at`; it takes `VERDICT_BYTES`. */
export function writeVerdict(into: Buffer, at: number, queue: number, id: number, verdict: number): void {
  writeHeader(into, at, VERDICT_BYTES, VERDICT, REQUEST, queue);
  into.writeUInt16LE(12, at + 20);
  into.writeUInt16LE(ATTRIBUTE_VERDICT, at + 22);
  into.writeUInt32BE(verdict, at + 24);
  into.writeUInt32BE(id, at + 28);
}

/** Calls `onPacket` for each packet in a message read from a queue; skips everything else. */
export function readPackets(message: Buffer, length: number, onPacket: (packet: QueuedPacket) => void): void {
  for (const { type, start, end } of messagesIn(message, length)) {
    if (type !== PACKET || end - start < HEADER_BYTES) continue;
    const packet = readPacket(message, start, end);
    if (packet) onPacket(packet);
  }
}

/** The kernel's answer to a request: 0 or an error number; null if this is not an answer. */
export function readAnswer(message: Buffer, length: number): number | null {
  for (const { type, start, end } of messagesIn(message, length)) {
    if (type !== ERROR || end - start < HEADER_BYTES) continue;
    const error = message.readInt32LE(start + 16);
    return error === 0 ? 0 : -error;
  }
  return null;
}

function readPacket(message: Buffer, start: number, end: number): QueuedPacket | null {
  let id = -1;
  let full_length = -1;
  let payload = -1;
  let payload_end = -1;
  for (let at = start + HEADER_BYTES; at + 4 <= end; ) {
    const size = message.readUInt16LE(at);
    if (size < 4 || at + size > end) return null;
    const type = message.readUInt16LE(at + 2) & TYPE_MASK;
    if (type === ATTRIBUTE_PACKET && size >= 8) id = message.readUInt32BE(at + 4);
    else if (type === ATTRIBUTE_FULL_LENGTH && size >= 8) full_length = message.readUInt32BE(at + 4);
    else if (type === ATTRIBUTE_PAYLOAD) {
      payload = at + 4;
      payload_end = at + size;
    }
    at += (size + 3) & ~3;
  }
  if (id < 0) return null;
  const shown = payload < 0 ? 0 : payload_end - payload;
  return {
    queue: message.readUInt16BE(start + 18),
    id,
    length: full_length >= 0 ? full_length : shown,
    start: payload < 0 ? 0 : payload,
    end: payload < 0 ? 0 : payload_end,
  };
}

/** The messages in what was read from a netlink socket: the type of each, and where it is. */
export function* messagesIn(message: Buffer, length: number) {
  for (let start = 0; start + 16 <= length; ) {
    const size = message.readUInt32LE(start);
    if (size < 16 || start + size > length) return;
    yield { type: message.readUInt16LE(start + 4), start, end: start + size };
    start += (size + 3) & ~3;
  }
}

/** A request to a part of the packet filter; `resource` is the number of a queue, else 0. */
export function filterRequest(type: number, flags: number, resource: number, attributes: Buffer): Buffer {
  const request = Buffer.alloc(HEADER_BYTES + attributes.length);
  writeHeader(request, 0, request.length, type, flags, resource);
  attributes.copy(request, HEADER_BYTES);
  return request;
}

function writeHeader(
  into: Buffer,
  at: number,
  size: number,
  type: number,
  flags: number,
  queue: number,
): void {
  into.writeUInt32LE(size, at);
  into.writeUInt16LE(type, at + 4);
  into.writeUInt16LE(flags, at + 6);
  // Sequence and port number of the sender, family and version: all 0.
  into.fill(0, at + 8, at + 18);
  into.writeUInt16BE(queue, at + 18);
}

/** An attribute of a request. */
export function attribute(type: number, value: Buffer): Buffer {
  const padded = Buffer.alloc(4 + ((value.length + 3) & ~3));
  padded.writeUInt16LE(4 + value.length);
  padded.writeUInt16LE(type, 2);
  value.copy(padded, 4);
  return padded;
}

/** The value of an attribute that is a number of 32 bits. */
export function bigEndian(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
