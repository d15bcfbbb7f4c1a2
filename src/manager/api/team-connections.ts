import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { ApiError } from '../../contract/errors.ts';

/** However many descriptors there are: an idle connection costs memory, too. */
const CONNECTIONS_MAX = 10_000;
/** Where the kernel does not tell. */
const DESCRIPTORS = 1024;
/** A connection may be passed through, which takes a second descriptor; deliveries, children and files take others. */
const DESCRIPTORS_PER_CONNECTION = 3;
const LEAST = 8;
/** What one address has before anybody is known to speak, and one team of what is passed through. */
const SHARE = 1 / 4;

interface Connection {
  /** A team, once it is known to speak; an address before that. */
  holder: string;
  answers: number;
}

/**
 * The connections of a manager. Where all are taken room is made by the team or address that holds most of them, so
 * that nobody ends the connections of others by opening more: first the one that has gone longest without a complete
 * request, one whose answer is under way only where every one of the holder's is like that.
 */
export class TeamConnections {
  readonly #max: number;
  readonly #address_max: number;
  readonly #connections = new Map<Socket, Connection>();
  /** Of each holder, in the order of their last complete request. */
  readonly #held = new Map<string, Set<Socket>>();

  constructor(max = connectionsMax()) {
    this.#max = max;
    this.#address_max = shareOf(max);
  }

  add(socket: Socket): void {
    const holder = `address ${socket.remoteAddress}`;
    if ((this.#held.get(holder)?.size ?? 0) >= this.#address_max) this.#makeRoom(holder);
    if (this.#connections.size >= this.#max) this.#makeRoom(this.#largest());
    this.#connections.set(socket, { holder, answers: 0 });
    this.#hold(holder, socket);
    socket.once('close', () => this.#remove(socket));
  }

  /** A request is complete, and this team's. */
  requestComplete(socket: Socket, team_id: string | null): void {
    const connection = this.#connections.get(socket);
    if (!connection) return;
    this.#let(connection.holder, socket);
    if (team_id !== null) connection.holder = `team ${team_id}`;
    connection.answers += 1;
    this.#hold(connection.holder, socket);
  }

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

  #let(holder: string, socket: Socket): void {
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
    this.#let(connection.holder, socket);
  }
}

/** What is passed through to sandboxes at a time, by team: each takes a connection for as long as it lasts. */
export class PassedShares {
  readonly #max: number;
  readonly #under_way = new Map<string, number>();

  constructor(max = shareOf(connectionsMax())) {
    this.#max = max;
  }

  /** Takes one place of a team's; throws `too_many_requests` where it has them all. */
  acquire(team_id: string): () => void {
    const taken = this.#under_way.get(team_id) ?? 0;
    if (taken >= this.#max) {
      const message = `The team has ${this.#max} calls of its sandboxes under way.`;
      throw new ApiError('too_many_requests', message, { retry_after_s: 1 });
    }
    this.#under_way.set(team_id, taken + 1);
    let is_given_back = false;
    return () => {
      if (is_given_back) return;
      is_given_back = true;
      const left = (this.#under_way.get(team_id) ?? 1) - 1;
      if (left > 0) this.#under_way.set(team_id, left);
      else this.#under_way.delete(team_id);
    };
  }
}

function shareOf(max: number): number {
  return Math.max(1, Math.floor(max * SHARE));
}

function connectionsMax(): number {
  const descriptors = Number(limitOfFiles() ?? DESCRIPTORS);
  const max = Math.floor(
    (Number.isFinite(descriptors) ? descriptors : DESCRIPTORS) / DESCRIPTORS_PER_CONNECTION,
  );
  return Math.max(LEAST, Math.min(CONNECTIONS_MAX, max));
}

function limitOfFiles(): string | undefined {
  try {
    return /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  } catch {
    return undefined;
  }
}
