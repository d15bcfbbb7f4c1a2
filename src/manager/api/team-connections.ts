import type { Socket } from 'node:net';
import { UnreadAnswers } from '../../base/http/unread-answers.ts';
import { descriptorLimit } from '../../base/linux/descriptors.ts';
import { REQUESTS_MAX } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';

/** The limit if descriptors allow more: an idle connection costs memory, too. */
const CONNECTIONS_MAX = 10_000;
/** Assumed if the limit of descriptors is unknown. */
const DESCRIPTORS = 1024;
/** A connection may be passed through, which takes a second descriptor; deliveries, children and files take others. */
const DESCRIPTORS_PER_CONNECTION = 3;
const LEAST = 8;
/** The share of one address before authentication, and of one team in passed-through requests. */
const SHARE = 1 / 4;

interface Connection {
  /** The team after authentication, the address before. */
  holder: string;
  answers: number;
}

/**
 * The connections of a manager. When the limit is reached, the team or address that holds the most loses one, so that
 * opening connections never closes those of others. The one longest without a complete request is closed first; one with
 * an answer in progress only if all of the holder's have one.
 */
export class TeamConnections {
  readonly #max: number;
  readonly #address_max: number;
  readonly #connections = new Map<Socket, Connection>();
  readonly #unread = new UnreadAnswers();
  /** Of each holder, in the order of their last complete request. */
  readonly #held = new Map<string, Set<Socket>>();

  constructor(max = connectionsMax()) {
    this.#max = max;
    this.#address_max = shareOf(max);
  }

  /** Adds a new connection; closes another if there are too many. */
  add(socket: Socket): void {
    const holder = `address ${socket.remoteAddress}`;
    if ((this.#held.get(holder)?.size ?? 0) >= this.#address_max) this.#makeRoom(holder);
    if (this.#connections.size >= this.#max) this.#makeRoom(this.#largest());
    this.#connections.set(socket, { holder, answers: 0 });
    this.#hold(holder, socket);
    socket.once('close', () => this.#remove(socket));
  }

  /** Call when a request is complete; `team_id` null: it is not authenticated. */
  requestComplete(socket: Socket, team_id: string | null): void {
    const connection = this.#connections.get(socket);
    if (!connection) return;
    this.#release(connection.holder, socket);
    if (team_id !== null) connection.holder = `team ${team_id}`;
    connection.answers += 1;
    this.#hold(connection.holder, socket);
    this.#unread.look(this.#connections.keys());
  }

  /** Call when an answer is complete. */
  answered(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (connection && connection.answers > 0) connection.answers -= 1;
  }

  /** Ends every connection. */
  close(): void {
    for (const socket of this.#connections.keys()) socket.destroy();
  }

  #hold(holder: string, socket: Socket): void {
    const held = this.#held.get(holder) ?? new Set();
    this.#held.set(holder, held.add(socket));
  }

  #release(holder: string, socket: Socket): void {
    const held = this.#held.get(holder);
    held?.delete(socket);
    if (held?.size === 0) this.#held.delete(holder);
  }

  #largest(): string {
    let largest = { holder: '', size: 0 };
    for (const [holder, { size }] of this.#held) if (size > largest.size) largest = { holder, size };
    return largest.holder;
  }

  #makeRoom(holder: string): void {
    const held = [...(this.#held.get(holder) ?? [])];
    const idle = held.find((socket) => this.#connections.get(socket)?.answers === 0);
    const leaving = idle ?? held[0];
    if (!leaving) return;
    this.#remove(leaving);
    leaving.destroy();
  }

  #remove(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (!connection) return;
    this.#connections.delete(socket);
    this.#release(connection.holder, socket);
  }
}

/** A number of requests at a time for each of many holders, such as teams. */
class Shares {
  readonly #max: number;
  readonly #what: string;
  readonly #under_way = new Map<string, number>();

  constructor(max: number, what: string) {
    this.#max = max;
    this.#what = what;
  }

  /** Acquires a slot of a holder and returns its release (idempotent); throws `too_many_requests` if all are in use. */
  acquire(holder: string): () => void {
    const taken = this.#under_way.get(holder) ?? 0;
    if (taken >= this.#max) {
      throw new ApiError('too_many_requests', `${this.#max} ${this.#what} are in progress already.`, {
        retry_after_s: 1,
      });
    }
    this.#under_way.set(holder, taken + 1);
    let is_released = false;
    return () => {
      if (is_released) return;
      is_released = true;
      const left = (this.#under_way.get(holder) ?? 1) - 1;
      if (left > 0) this.#under_way.set(holder, left);
      else this.#under_way.delete(holder);
    };
  }
}

/** Limits the passed-through requests of each team: each holds a connection while it lasts. */
export class PassedShares extends Shares {
  constructor(max = shareOf(connectionsMax())) {
    super(max, 'requests of the team to its sandboxes');
  }
}

/** Limits the other requests of each team, and of each address until it has authenticated. */
export class RequestShares extends Shares {
  constructor(max = REQUESTS_MAX) {
    super(max, 'requests of the caller');
  }
}

function shareOf(max: number): number {
  return Math.max(1, Math.floor(max * SHARE));
}

function connectionsMax(): number {
  const limit = descriptorLimit();
  const descriptors = Number.isFinite(limit) ? limit : DESCRIPTORS;
  return Math.max(LEAST, Math.min(CONNECTIONS_MAX, Math.floor(descriptors / DESCRIPTORS_PER_CONNECTION)));
}
