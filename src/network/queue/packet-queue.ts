import { closeSync } from 'node:fs';
import { inNamespace, openFilterSocket, receive, SystemError, send } from './libc.ts';
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

/** How many packets of a direction may wait; the kernel drops what comes on top. */
const PACKETS_MAX = 1_024;
const RECEIVE_BYTES = 4 * 1024 * 1024;
/** More than a message about one packet takes. */
const MESSAGE_BYTES = 4_096;
const VERDICTS_MAX = 64;
/** How many packets are read at once before their verdicts: one busy sandbox must not keep the others waiting. */
const READ_MAX = 128;

/**
 * The packet queues of one network namespace, over one socket. While it is open the kernel holds every packet that a
 * rule sends to one of them until its verdict; when it is closed the kernel drops them. It is used by one thread, and
 * its file descriptor must be closed by others if that thread dies.
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
   * Opens queues by their numbers in the namespace of `path`. Throws SystemError: `EBUSY` where somebody else has one
   * open, `EPERM` without the rights, `ENOENT` without the namespace.
   */
  static open(path: string, queues: readonly number[]): PacketQueue {
    const queue = new PacketQueue(inNamespace(path, () => openFilterSocket(RECEIVE_BYTES)));
    try {
      for (const number of queues) queue.#bind(number);
      for (const number of queues) queue.#configure(number);
      return queue;
    } catch (error) {
      queue.close();
      throw error;
    }
  }

  /**
   * Calls `onPacket` for packets that wait, with the bytes that its positions are in. Returns whether there may be
   * more. Throws SystemError.
   */
  read(onPacket: (packet: QueuedPacket, bytes: Buffer) => void): boolean {
    for (let read = 0; read < READ_MAX; read++) {
      const length = receive(this.fd, this.#message);
      if (length === null) return false;
      readPackets(this.#message, length, (packet) => onPacket(packet, this.#message));
    }
    return true;
  }

  /** Gives a verdict, at the latest with the next `flush`. Throws SystemError. */
  decide(queue: number, id: number, verdict: number): void {
    writeVerdict(this.#verdicts, this.#waiting * VERDICT_BYTES, queue, id, verdict);
    this.#waiting += 1;
    if (this.#waiting === VERDICTS_MAX) this.flush();
  }

  /** Sends the verdicts that wait. Throws SystemError. */
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
    // Netlink answers while it is asked: the answer is there.
    const length = receive(this.fd, this.#message);
    const errno = length === null ? null : readAnswer(this.#message, length);
    if (errno === null) throw new Error('the kernel did not answer a packet queue request');
    if (errno !== 0) throw new SystemError(`packet queue ${queue}`, errno);
  }

  #configure(queue: number): void {
    const request = configureRequest({ queue, copied_bytes: COPIED_BYTES, packets_max: PACKETS_MAX });
    send(this.fd, request, request.length);
  }
}
