import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { StartError } from '../contract/errors.ts';

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

  /** Reads what was kept. */
  load(): void {
    try {
      this.#set = JSON.parse(readFileSync(this.#path, 'utf8'));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
      throw new StartError(`${this.#path} cannot be read`);
    }
  }

  /** Forgets what another sandbox was given. */
  clear(): void {
    this.#set = {};
    rmSync(this.#path, { force: true });
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
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
    const file = openSync(next, flags, 0o600);
    try {
      writeSync(file, JSON.stringify(set));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(next, this.#path);
  }
}
