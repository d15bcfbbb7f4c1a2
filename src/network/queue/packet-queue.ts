import { closeSync } from 'node:fs';
import { SystemError } from '../../base/linux/libc.ts';
import { QUEUES, UDP_QUEUES } from '../directions.ts';
import { inNamespace, openFilterSocket, receive, send } from './libc.ts';
import {
  bindRequest,
  configureRequest,
  type QueuedPacket,
  readAnswer,
  readPackets,
  VERDICT_BYTES,
  writeVerdict,
} from './netlink.ts';
import { COPIED_BYTES } from './packet.ts';

/** The number of packets of a direction that may wait; the kernel drops any more. */
const PACKETS_MAX = 1_024;
const RECEIVE_BYTES = 4 * 1024 * 1024;
/** More than a message about one packet takes. */
const MESSAGE_BYTES = 4_096;
const VERDICTS_MAX = 64;

/** Queues by their numbers. */
export interface QueueNumbers {
  /** Their packets come whole where the kernel splits them later. */
  whole: readonly number[];
  /** Their packets come split. */
  split: readonly number[];
}

/** All queues of a sandbox. */
export const SANDBOX_QUEUES: QueueNumbers = {
  whole: Object.values(QUEUES),
  split: Object.values(UDP_QUEUES),
};

/**
 * The packet queues of one network namespace, over one socket. While it is open, the kernel holds each packet that a
 * rule sends to a queue until it gets a verdict; when it is closed, the kernel drops them. It belongs to one thread; if
 * that thread dies, another must close the file descriptor.
 */
export class PacketQueue {
  readonly fd: number;
  readonly #message = Buffer.allocUnsafeSlow(MESSAGE_BYTES);
  readonly #verdicts = Buffer.allocUnsafeSlow(VERDICTS_MAX * VERDICT_BYTES);
  #waiting = 0;

  private constructor(fd: number) {
    this.fd = fd;
  }

  /**
   * Opens queues by their numbers in the namespace of `path`. Throws SystemError: `EBUSY` if another process has one
   * open, `EPERM` without permission, `ENOENT` if there is no such namespace.
   */
  static open(path: string, { whole, split }: QueueNumbers): PacketQueue {
    const queue = new PacketQueue(inNamespace(path, () => openFilterSocket(RECEIVE_BYTES)));
    try {
      for (const number of [...whole, ...split]) queue.#bind(number);
      for (const number of whole) queue.#configure(number, true);
      for (const number of split) queue.#configure(number, false);
      return queue;
    } catch (error) {
      queue.close();
      throw error;
    }
  }

  /**
   * Calls `onPacket` for at most so many waiting packets, with the buffer that their positions refer to. Returns whether
   * there may be more. Throws SystemError.
   */
  read(packets: number, onPacket: (packet: QueuedPacket, bytes: Buffer) => void): boolean {
    for (let read = 0; read < packets; read++) {
      const length = receive(this.fd, this.#message);
      if (length === null) return false;
      readPackets(this.#message, length, (packet) => onPacket(packet, this.#message));
    }
    return true;
  }

  /** Queues a verdict, which is sent by the next `flush` at the latest. Throws SystemError. */
  decide(queue: number, id: number, verdict: number): void {
    writeVerdict(this.#verdicts, this.#waiting * VERDICT_BYTES, queue, id, verdict);
    this.#waiting += 1;
    if (this.#waiting === VERDICTS_MAX) this.flush();
  }

  /** Sends queued verdicts. Throws SystemError. */
  flush(): void {
    if (this.#waiting === 0) return;
    const length = this.#waiting * VERDICT_BYTES;
    this.#waiting = 0;
    send(this.fd, this.#verdicts, length);
  }

  /** Closes the queues: the kernel drops what it still holds. */
  close(): void {
    closeSync(this.fd);
  }

  #bind(queue: number): void {
    const request = bindRequest(queue);
    send(this.fd, request, request.length);
    // Netlink answers synchronously, so the answer has already arrived.
    const length = receive(this.fd, this.#message);
    const errno = length === null ? null : readAnswer(this.#message, length);
    if (errno === null) throw new Error('the kernel did not answer a packet queue request');
    if (errno !== 0) throw new SystemError(`packet queue ${queue}`, errno);
  }

  #configure(queue: number, is_whole: boolean): void {
    const request = configureRequest({
      queue,
      is_whole,
      copied_bytes: COPIED_BYTES,
      packets_max: PACKETS_MAX,
    });
    send(this.fd, request, request.length);
  }
}
