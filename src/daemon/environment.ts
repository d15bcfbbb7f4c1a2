import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { replaceFileNow } from '../base/durable-file.ts';
import { BODY_MAX_BYTES, VARIABLES_MAX } from '../contract/defaults.ts';
import { invalidField, StartError } from '../contract/errors.ts';

/** More than the variables of a process can take. */
const FILE_MAX_BYTES = 4 * 1024 * 1024;

/** What a shell that started the daemon has noted of itself: of a process it says nothing. */
const OF_A_SHELL = ['PWD', 'OLDPWD', '_'];

/** The environment of supervised processes. Variables set through the API survive restarts, in a file of mode 0600. */
export class Environment {
  readonly #path: string;
  readonly #plain: Record<string, string>;
  #set: Record<string, string> = {};
  #extra: Record<string, string> = {};

  /** `plain` is the daemon's own environment without its secrets. */
  constructor(path: string, plain: Record<string, string>) {
    this.#path = path;
    this.#plain = { ...plain };
    for (const name of OF_A_SHELL) delete this.#plain[name];
  }

  /**
   * Reads the stored variables. Sets aside anything that is not a valid file of the daemon, without following links, and
   * returns its new path; null otherwise. Throws StartError if the disk cannot be read, which may be temporary.
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

  /** Only the latest damaged file is kept, because it may contain secrets. */
  get #aside(): string {
    return this.#path.replace(/(\.json)?$/, '-damaged.json');
  }

  /** Removes the stored variables, which belong to another sandbox. */
  clear(): void {
    this.#set = {};
    for (const path of [this.#path, this.#aside]) rmSync(path, { recursive: true, force: true });
  }

  /** Adds variables of the daemon itself, such as its address. They are not stored. */
  add(variables: Record<string, string>): void {
    Object.assign(this.#extra, variables);
  }

  /** Returns the environment for a process that starts now. */
  current(): Record<string, string> {
    return { ...this.#plain, ...this.#extra, ...this.#set };
  }

  /**
   * Sets variables, removes those that are null, and stores the result; returns all names set. Throws `invalid_request` for
   * more than processes are started with. Contract section 4.
   */
  change(env: Record<string, string | null>): string[] {
    const set = { ...this.#set };
    for (const [name, value] of Object.entries(env)) {
      if (value === null) delete set[name];
      else set[name] = value;
    }
    const names = Object.keys(set);
    if (names.length > VARIABLES_MAX)
      throw invalidField('env', `the sandbox would have more than ${VARIABLES_MAX} variables`);
    const text = JSON.stringify(set);
    if (Buffer.byteLength(text) > BODY_MAX_BYTES)
      throw invalidField('env', `the variables of the sandbox would be more than ${BODY_MAX_BYTES} bytes`);
    replaceFileNow(this.#path, text);
    this.#set = set;
    return names.sort();
  }
}

/** The variables in a file that the daemon wrote; null for anything else. */
function read(path: string): Record<string, string> | null {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    // A link or a socket.
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
