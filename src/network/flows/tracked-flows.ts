import { closeSync, existsSync, readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { SystemError } from '../../base/linux/libc.ts';
import type { Link } from '../namespace/addresses.ts';
import { readTable } from '../namespace/kernel-counters.ts';
import { inNamespace, openFilterSocket, receive, send, sendAside } from '../queue/libc.ts';
import {
  ACKNOWLEDGE,
  attribute,
  bigEndian,
  filterRequest,
  HEADER_BYTES,
  LIST,
  messagesIn,
  REQUEST,
  readAnswer,
  TYPE_MASK,
} from '../queue/netlink.ts';
import { FLOW_COUNTERS, type FlowCounter, linkMark, MARK_MASK, markedLink } from './flow-rules.ts';

// The wire format of the kernel's connection tracking (`ctnetlink`); see `netlink.ts` for the byte orders.

const SUBSYSTEM = 1 << 8;
const NEW_FLOW = SUBSYSTEM;
const GET_FLOWS = SUBSYSTEM | 1;
const DELETE_FLOWS = SUBSYSTEM | 2;
const MARK = 8;
const MASK = 21;
const DONE = 3;

const RECEIVE_BYTES = 256 * 1024;
const MESSAGE_BYTES = 64 * 1024;
/** Messages read in one go, some 100 flows each: a fraction of a millisecond, in which nothing else runs. */
const MESSAGES_AT_ONCE = 4;

/** The size that the kernel gives the table on a machine of one to four GiB. */
const SIZE_MAX_SMALL = 65_536;

const FOLDER = '/proc/sys/net/netfilter';

/** The table of flows that a node tracks; `path` is that of its network namespace, null for the one of this process. */
export class TrackedFlows {
  readonly #path: string | null;

  constructor(path: string | null) {
    this.#path = path;
  }

  /** The number of its entries, of sandboxes and all else. */
  get size(): number {
    return this.#number('nf_conntrack_count') ?? 0;
  }

  /** The number of entries that it has room for. */
  get size_max(): number {
    return this.#number('nf_conntrack_max') ?? SIZE_MAX_SMALL;
  }

  /** The packets that the rules in `table` refused, by the bound. Throws SystemError. */
  refused(table: string): Record<FlowCounter, number> {
    const found = this.#inside(() => readTable(table));
    const counts = FLOW_COUNTERS.map((name) => [name, found.get(name)?.packets ?? 0]);
    return Object.fromEntries(counts) as Record<FlowCounter, number>;
  }

  /** The numbers of entries of the links that have any, by their indexes. Takes about 1 µs for each. Throws SystemError. */
  async byLink(): Promise<Map<number, number>> {
    const counts = new Map<number, number>();
    const fd = this.#inside(() => openFilterSocket(RECEIVE_BYTES));
    try {
      // All marks that have the highest bit of ours.
      const request = markRequest(GET_FLOWS, REQUEST | LIST, 0x8000_0000, 0x8000_0000);
      send(fd, request, request.length);
      const message = Buffer.allocUnsafeSlow(MESSAGE_BYTES);
      for (let read = 1; ; read++) {
        const length = receive(fd, message);
        if (length === null || !addMarks(message, length, counts)) return counts;
        if (read % MESSAGES_AT_ONCE === 0) await setImmediate();
      }
    } finally {
      closeSync(fd);
    }
  }

  /** Removes the entries of a link, for which the kernel walks through the whole table. Rejects with SystemError. */
  async forget(link: Link): Promise<void> {
    if (this.size === 0) return;
    const fd = this.#inside(() => openFilterSocket(RECEIVE_BYTES));
    try {
      await sendAside(fd, markRequest(DELETE_FLOWS, REQUEST | ACKNOWLEDGE, linkMark(link), MARK_MASK));
      // Netlink answers before `send` returns.
      const message = Buffer.allocUnsafeSlow(MESSAGE_BYTES);
      const length = receive(fd, message);
      const error = length === null ? 0 : (readAnswer(message, length) ?? 0);
      if (error !== 0) throw new SystemError('CT_DELETE', error);
    } finally {
      closeSync(fd);
    }
  }

  /** Null while the kernel tracks nothing, because no rule has asked for it. */
  #number(name: string): number | null {
    const path = `${FOLDER}/${name}`;
    return this.#inside(() => (existsSync(path) ? Number(readFileSync(path, 'latin1')) : null));
  }

  #inside<Result>(run: () => Result): Result {
    return this.#path === null ? run() : inNamespace(this.#path, run);
  }
}

function markRequest(type: number, flags: number, mark: number, mask: number): Buffer {
  const filter = [attribute(MARK, bigEndian(mark)), attribute(MASK, bigEndian(mask))];
  return filterRequest(type, flags, 0, Buffer.concat(filter));
}

/** Counts the flows in a message by their marks. Returns whether there may be more messages. */
function addMarks(message: Buffer, length: number, counts: Map<number, number>): boolean {
  for (const { type, start, end } of messagesIn(message, length)) {
    if (type !== NEW_FLOW) {
      if (type === DONE) return false;
      continue;
    }
    const link = markedLink(markIn(message, start + HEADER_BYTES, end));
    if (link !== null) counts.set(link, (counts.get(link) ?? 0) + 1);
  }
  return readAnswer(message, length) === null;
}

function markIn(message: Buffer, start: number, end: number): number {
  for (let at = start; at + 8 <= end; ) {
    const size = message.readUInt16LE(at);
    if (size < 4) break;
    if ((message.readUInt16LE(at + 2) & TYPE_MASK) === MARK) return message.readUInt32BE(at + 4);
    at += (size + 3) & ~3;
  }
  return 0;
}
