import type { ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { execa, type Options } from 'execa';

/** How long what a program is to write is waited for. */
const WITHIN_MS = 60_000;

/** How a program ended; both null if it could not be started. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A line of one of our programs' logs. */
export interface LogLine {
  level: string;
  msg: string;
  url?: string;
  [key: string]: unknown;
}

/** A program that runs beside its tests: what it has written so far, and how it ends. It gets SIGTERM with this process's end. */
export class RunningProgram {
  readonly child: ChildProcess;
  /** Resolves at its end; what it has started may have its output open still. Never rejects. */
  readonly exited: Promise<Exit>;
  /** Resolves once its output is read, too. Never rejects. */
  readonly ended: Promise<Exit>;
  readonly #kill: (signal: NodeJS.Signals) => boolean;
  readonly #written: [descriptor: 1 | 2, piece: Buffer][] = [];
  readonly #news = new EventEmitter();
  #is_read = false;

  /** `options`: execa's, with no stdin unless it is told. One with `detached` outlives this process. */
  constructor(command: readonly string[], options: Options = {}) {
    const [file = '', ...args] = command;
    const running = execa(file, args, {
      stdin: 'ignore',
      ...options,
      buffer: false,
      reject: false,
      forceKillAfterDelay: false, // who ends a program sees how it takes the signal
    });
    this.child = running.nodeChildProcess;
    this.#kill = (signal) => running.kill(signal);
    this.#keep(1, this.child.stdout);
    this.#keep(2, this.child.stderr);
    this.child.stdin?.on('error', () => {}); // it need not read all, or anything, before it ends
    this.ended = running.then(({ exitCode = null, signal = null }) => {
      this.#is_read = true;
      this.#news.emit('news');
      return { code: exitCode, signal };
    });
    const exit = new Promise<Exit>((resolve) => {
      this.child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    this.exited = Promise.race([exit, this.ended]);
  }

  #keep(descriptor: 1 | 2, stream: Readable | null): void {
    stream?.on('data', (piece: Buffer) => {
      this.#written.push([descriptor, piece]);
      this.#news.emit('news');
    });
  }

  get pid(): number {
    return this.child.pid as number;
  }

  get is_running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Its stdout, byte by byte. */
  get bytes(): Buffer {
    return this.#of(1);
  }

  get stdout(): string {
    return this.#of(1).toString();
  }

  get stderr(): string {
    return this.#of(2).toString();
  }

  /** Both, in the order in which they came. */
  get output(): string {
    return this.#of(1, 2).toString();
  }

  #of(...descriptors: number[]): Buffer {
    const written = this.#written.filter(([descriptor]) => descriptors.includes(descriptor));
    return Buffer.concat(written.map(([, piece]) => piece));
  }

  /** Resolves once stdout and stderr together match; rejects with them where it ends before. */
  wrote(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#found(String(pattern), () => pattern.exec(this.stdout + this.stderr));
  }

  /** Resolves with the line of its log, on stderr, that has this message; rejects with all where it ends before. */
  logged(msg: string): Promise<LogLine> {
    return this.#found(`"${msg}"`, () => logLines(this.stderr).find((line) => line.msg === msg));
  }

  async #found<Found>(what: string, look: () => Found | null | undefined): Promise<Found> {
    const late = AbortSignal.timeout(WITHIN_MS);
    for (;;) {
      const found = look();
      if (found) return found;
      const { spawnargs, exitCode, signalCode } = this.child;
      if (this.#is_read || late.aborted)
        throw new Error(
          `${spawnargs[0]} (${exitCode ?? signalCode ?? 'runs'}): no ${what} in ${this.output}`,
        );
      await once(this.#news, 'news', { signal: late }).catch(() => {});
    }
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    this.#kill(signal);
  }

  /** Ends it by this signal, unless it has ended. */
  stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<Exit> {
    this.kill(signal);
    return this.exited;
  }
}

/** A running program that tells things on stdout, in JSON, a line each. */
export class TellingProgram extends RunningProgram {
  readonly #lines: AsyncIterator<string>;

  constructor(command: readonly string[], options: Options = {}) {
    super(command, { ...options, stderr: 'inherit' });
    this.#lines = createInterface({ input: this.child.stdout as Readable })[Symbol.asyncIterator]();
  }

  /** The next thing that it tells; rejects once it has ended. */
  // biome-ignore lint/suspicious/noExplicitAny: what it tells is what a test looks at.
  async next<Told = any>(): Promise<Told> {
    const { done, value } = await this.#lines.next();
    if (done) throw new Error(`${this.child.spawnargs[0]} has ended`);
    return JSON.parse(value);
  }
}

/** The whole lines of a log in what one of our programs has written. */
export function logLines(written: string): LogLine[] {
  const whole = written.split('\n').slice(0, -1);
  return whole.flatMap((line) => {
    try {
      return line.startsWith('{') ? [JSON.parse(line) as LogLine] : [];
    } catch {
      return []; // another program's
    }
  });
}
