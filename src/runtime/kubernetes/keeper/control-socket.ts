import { linkSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, sleep } from '../../../base/clock.ts';
import { SOCKET, TOKEN } from '../../rootfs.ts';
import { RUN_FOLDER } from './keeper-protocol.ts';

const POLL_MS = 10;
const SOCKET_MODE = 0o600;
const OWN_FOLDER = 'own';

/**
 * The daemon's control socket, taken out of the sandbox's reach before anything runs there: it gets a name in a folder
 * that the sandbox does not see, and loses the one inside, as the token does. `folder`: the control volume.
 */
export class ControlSocket {
  readonly #folder: string;
  readonly #clock: Clock;
  #taken: Promise<string> | null = null;

  constructor(folder: string, clock: Clock) {
    this.#folder = folder;
    this.#clock = clock;
  }

  /** The path of the socket, once the daemon listens on it. */
  taken(): Promise<string> {
    this.#taken ??= this.#take();
    return this.#taken;
  }

  async #take(): Promise<string> {
    const inside = join(this.#folder, RUN_FOLDER, SOCKET);
    const own = join(this.#folder, OWN_FOLDER);
    mkdirSync(own, { recursive: true, mode: 0o700 });
    const path = join(own, SOCKET);
    while (!isListening(inside)) await sleep(this.#clock, POLL_MS);
    rmSync(path, { force: true });
    linkSync(inside, path);
    rmSync(inside);
    rmSync(join(this.#folder, RUN_FOLDER, TOKEN), { force: true });
    return path;
  }
}

/** A socket has its name before anything listens on it; the daemon sets the mode once it does. */
function isListening(socket: string): boolean {
  const stat = statSync(socket, { throwIfNoEntry: false });
  return stat?.isSocket() === true && (stat.mode & 0o777) === SOCKET_MODE;
}
