import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { StartError } from '../contract/errors.ts';

/** More than all variables that processes can have. */
const FILE_MAX_BYTES = 4 * 1024 * 1024;

/** What processes get in addition to the daemon's plain environment; kept over restarts with mode 0600. */
export class Environment {
  readonly #path: string;
  readonly #plain: Record<string, string>;
  #set: Record<string, string> = {};
  #extra: Record<string, string> = {};

  /** `plain` is the daemon's own environment, free of its secrets. */
  constructor(path: string, plain: Record<string, string>) {
    this.#path = path;
    this.#plain = plain;
  }

  /**
   * Reads what was kept. Anything but a file that the daemon has written itself is set aside, unread and never followed,
   * and its new path returned; otherwise null. Throws StartError where the disk refuses: that may pass.
   */
  load(): string | null {
    try {
      const kept = read(this.#path);
      if (kept) {
        this.#set = kept;
        return null;
      }
      rmSync(this.#aside, { recursive: true, force: true });
      renameSync(this.#path, this.#aside);
      return this.#aside;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return null;
      throw new StartError(`${this.#path} cannot be read (${code})`);
    }
  }

  /** The latest one alone is kept: it may hold secrets. */
  get #aside(): string {
    return this.#path.replace(/(\.json)?$/, '-damaged.json');
  }

  /** Forgets what another sandbox was given. */
  clear(): void {
    this.#set = {};
    for (const path of [this.#path, this.#aside]) rmSync(path, { recursive: true, force: true });
  }

  /** Variables that the daemon itself adds, such as its own address. */
  add(variables: Record<string, string>): void {
    Object.assign(this.#extra, variables);
  }

  /** The environment of a process that starts now. */
  current(): Record<string, string> {
    return { ...this.#plain, ...this.#extra, ...this.#set };
  }

  /** Sets what is given, takes away what is null; returns the names that are set now. Contract section 4. */
  change(env: Record<string, string | null>): string[] {
    const set = { ...this.#set };
    for (const [name, value] of Object.entries(env)) {
      if (value === null) delete set[name];
      else set[name] = value;
    }
    this.#save(set);
    this.#set = set;
    return Object.keys(set).sort();
  }

  #save(set: Record<string, string>): void {
    const next = `${this.#path}.new`;
    rmSync(next, { recursive: true, force: true });
    const file = openSync(next, 'wx', 0o600);
    try {
      writeFileSync(file, JSON.stringify(set));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(next, this.#path);
  }
}

/** The variables in a file of the daemon's own; null where it is something else, or does not hold variables. */
function read(path: string): Record<string, string> | null {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    // A link, or a socket.
    if (['ELOOP', 'ENXIO'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
  try {
    const stat = fstatSync(file);
    if (!stat.isFile() || stat.uid !== process.geteuid?.() || stat.size > FILE_MAX_BYTES) return null;
    fchmodSync(file, 0o600);
    return variables(readFileSync(file, 'utf8'));
  } finally {
    closeSync(file);
  }
}

function variables(text: string): Record<string, string> | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
    const are_variables = Object.entries(value).every(
      ([name, each]) => /^[^=\0]+$/.test(name) && typeof each === 'string' && !each.includes('\0'),
    );
    return are_variables ? (value as Record<string, string>) : null;
  } catch {
    return null;
  }
}
