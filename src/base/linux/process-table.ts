import type { ChildProcessByStdio } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { ApiError } from '../../contract/errors.ts';
import { type Clock, runTime, type Timer } from '../clock.ts';
import { startHelper } from './helper-process.ts';
import { LAUNCHER } from './launcher.ts';
import { type ProcStat, parseStat, readPids, readProgramName, readStatus } from './procfs.ts';

/** The kinds of questions that the launcher answers, and what it multiplies a pid by to tell them apart. */
const STAT = 0;
const VARIABLE = 1;
const NAMESPACE = 2;
const KINDS = 4;
/** Bytes of a question, and of the length before an answer. */
const NUMBER_BYTES = 4;
/** The kernel answers from memory, in a thousandth of this: one that does not within so many ms waits for somebody else. */
const SILENT_MS = 500;
/** The same for the next one after one that did not: it may be one of many. */
const NEXT_SILENT_MS = 100;
/** So many are waited for one after the other; then nobody is asked until there is nothing left to ask. */
const SILENT_MAX = 4;
/** How long one that was silent is not asked again, in ms. */
const SILENCE_MS = 10_000;
/** Programs that were killed and have not ended: an environment can be made such that the kernel cannot let go of its reader. */
const STUCK_MAX = 16;
/** Programs that may end, one after the other, without having answered anything. */
const FAILURES_MAX = 3;
/** What the launcher ends with if the system has nothing left to read with: ENOMEM, ENFILE, EMFILE. */
const EXHAUSTED: ReadonlySet<number | null> = new Set([12, 23, 24]);

/** What the kernel says: null if it cannot be read; undefined if it does not answer. */
type Said = Buffer | null | undefined;

/** Questions that are asked together. */
interface Batch {
  said: Said[];
  left: number;
  resolve: (said: Said[]) => void;
  reject: (error: unknown) => void;
}

interface Question {
  number: number;
  batch: Batch;
  index: number;
}

/** A program that answers questions. */
type Looker = ChildProcessByStdio<Writable, Readable, null>;

/**
 * The kernel's process table, read by a program of its own: a process can make whoever reads of it in /proc wait for as long
 * as it likes, by a file system that does not answer. Of one that does, what /proc/<pid>/status says is taken, which waits
 * for nobody: its start time is then the one last seen, or 0. For the main thread alone.
 */
export class ProcessTable {
  readonly #clock: Clock;
  readonly #variable: string;
  /** Asked and not answered yet, in order. */
  #asked: Question[] = [];
  #looker: Looker | null = null;
  #limit: Timer | null = null;
  #received = Buffer.alloc(0);
  #failures = 0;
  #stuck = 0;
  #silent_now = 0;
  /** Questions that were not answered, with when they may be asked again. */
  readonly #silent = new Map<number, number>();
  #last_seen = new Map<number, ProcStat>();

  /** `variable`: the one whose values `variables` gives. Nothing is started before the first question. */
  constructor(clock: Clock, variable: string) {
    this.#clock = runTime(clock);
    this.#variable = variable;
  }

  /** Every visible process, by pid. Throws `too_many_requests` if the table cannot be read now. */
  async readAll(): Promise<Map<number, ProcStat>> {
    const stats = new Map<number, ProcStat>();
    for (const stat of await this.read(await readPids())) if (stat) stats.set(stat.pid, stat);
    for (const number of this.#silent.keys())
      if (!stats.has(Math.floor(number / KINDS))) this.#silent.delete(number);
    this.#last_seen = stats;
    return stats;
  }

  /** The processes with these pids, in their order; null where there is none. Errors as `readAll`. */
  async read(pids: readonly number[]): Promise<(ProcStat | null)[]> {
    const said = await this.#ask(pids, STAT);
    return pids.map((pid, index) => {
      const line = said[index];
      return line === undefined ? this.#byStatus(pid) : line && parseStat(line.toString('latin1'));
    });
  }

  /** Which of these very processes still exist: a pid alone may have been reused. Errors as `readAll`. */
  async stillThere(stats: readonly ProcStat[]): Promise<ProcStat[]> {
    const now = await this.read(stats.map(({ pid }) => pid));
    return stats.filter((stat, index) => isSame(stat, now[index] ?? null));
  }

  /**
   * The values of the variable in the environments that these processes were started with, at most 256 bytes of each: null
   * where it is missing or may not be read, undefined where the process does not let it be read now. Errors as `readAll`.
   */
  async variables(pids: readonly number[]): Promise<(string | null | undefined)[]> {
    return textsOf(await this.#ask(pids, VARIABLE));
  }

  /** The pid namespaces of these processes, as `pid:[<inode>]`; else as `variables`. */
  async namespaces(pids: readonly number[]): Promise<(string | null | undefined)[]> {
    return textsOf(await this.#ask(pids, NAMESPACE));
  }

  #byStatus(pid: number): ProcStat | null {
    const stat = readStatus(pid);
    const seen = this.#last_seen.get(pid);
    return stat && seen?.parent === stat.parent && seen.session === stat.session
      ? { ...seen, state: stat.state }
      : stat;
  }

  #ask(pids: readonly number[], kind: number): Promise<Said[]> {
    const now_ms = this.#clock.monotonicMs();
    if (this.#asked.length === 0) this.#silent_now = 0;
    const may_ask = kind !== VARIABLE || this.#stuck < STUCK_MAX;
    return new Promise((resolve, reject) => {
      const batch: Batch = { said: Array.from(pids, () => undefined), left: 0, resolve, reject };
      const questions: Question[] = [];
      for (const [index, pid] of pids.entries()) {
        const number = pid * KINDS + kind;
        const is_silent = this.#silent_now >= SILENT_MAX || (this.#silent.get(number) ?? 0) > now_ms;
        if (may_ask && !is_silent) questions.push({ number, batch, index });
      }
      batch.left = questions.length;
      if (batch.left === 0) return resolve(batch.said);
      this.#asked.push(...questions);
      this.#send(questions);
      this.#limit ?? this.#watch();
    });
  }

  /** Sends questions to the program; a new one is sent all that is not answered. */
  #send(questions: readonly Question[]): void {
    const unanswered = this.#looker ? questions : this.#asked;
    this.#looker ??= this.#start();
    if (this.#looker === null) {
      this.#giveUp();
      return;
    }
    const numbers = Uint32Array.from(unanswered, ({ number }) => number);
    (this.#looker.stdout as Socket).ref();
    this.#looker.stdin.write(Buffer.from(numbers.buffer));
  }

  /**
   * Null if no program can be started now. By Node, though that takes longer than posix_spawn(3): it needs no library of the
   * sandbox's root, which may be broken when it is to be paused or ended.
   */
  #start(): Looker | null {
    this.#received = Buffer.alloc(0);
    try {
      const looker = startHelper([LAUNCHER, 'look', this.#variable], {
        ...{ argv0: 'launcher', env: {}, stdio: ['pipe', 'pipe', 'ignore'] },
      }) as Looker;
      looker.on('error', () => {}); // it has no pid then
      if (looker.pid === undefined) return null;
      this.#follow(looker);
      return looker;
    } catch {
      return null; // no descriptor is left
    }
  }

  #follow(looker: Looker): void {
    looker.unref();
    for (const socket of [looker.stdin, looker.stdout]) {
      (socket as Socket).unref();
      socket.on('error', () => {}); // its end follows
    }
    looker.stdout.on('data', (data: Buffer) => {
      if (this.#looker === looker) this.#take(data);
    });
    looker.once('exit', (code) => {
      if (looker.killed) this.#stuck -= 1;
      if (this.#looker === looker) this.#onEnded(code);
    });
  }

  #take(data: Buffer): void {
    let rest: Buffer = this.#received.length === 0 ? data : Buffer.concat([this.#received, data]);
    let answered = 0;
    while (rest.length >= NUMBER_BYTES) {
      const length = rest.readInt32LE(0);
      const end = NUMBER_BYTES + Math.max(0, length);
      if (rest.length < end) break;
      answer(this.#asked[answered], length < 0 ? null : rest.subarray(NUMBER_BYTES, end));
      rest = rest.subarray(end);
      answered += 1;
    }
    this.#received = Buffer.from(rest);
    if (answered === 0) return;
    this.#asked.splice(0, answered);
    this.#failures = 0;
    this.#watch();
  }

  /** Watches over the questions that are not answered yet. */
  #watch(): void {
    this.#limit?.cancel();
    this.#limit = null;
    if (this.#asked.length === 0) {
      (this.#looker?.stdout as Socket | undefined)?.unref();
      return;
    }
    const first = this.#asked[0];
    this.#limit = this.#clock.after(this.#silent_now > 0 ? NEXT_SILENT_MS : SILENT_MS, () => {
      // After a busy moment its answers may wait to be read.
      setImmediate(() => {
        if (this.#asked[0] === first) this.#onSilent();
      });
    });
  }

  /** The program's name says which question it works on: those before that one are answered, but not sent yet. */
  #onSilent(): void {
    const number = Number.parseInt(readProgramName(this.#looker?.pid ?? 0), 10);
    const index = Math.max(
      0,
      this.#asked.findIndex((asked) => asked.number === number),
    );
    const [silent] = this.#asked.splice(index, 1);
    if (!silent) return;
    this.#silent_now += 1;
    this.#silent.set(silent.number, this.#clock.monotonicMs() + SILENCE_MS);
    answer(silent, undefined);
    if (this.#silent_now >= SILENT_MAX) this.#giveUp(index);
    this.#restart();
  }

  #onEnded(code: number | null): void {
    if (EXHAUSTED.has(code)) {
      const error = new ApiError(
        'too_many_requests',
        'The process table cannot be read right now. Try again later.',
      );
      for (const { batch } of this.#asked.splice(0)) batch.reject(error);
    }
    this.#failures += 1;
    this.#restart();
  }

  #restart(): void {
    const looker = this.#looker;
    this.#looker = null;
    if (looker?.kill('SIGKILL')) this.#stuck += 1;
    looker?.stdin.destroy();
    looker?.stdout.destroy();
    if (this.#failures >= FAILURES_MAX) this.#giveUp();
    if (this.#asked.length > 0) this.#send(this.#asked);
    this.#watch();
  }

  #giveUp(from = 0): void {
    this.#failures = 0;
    for (const question of this.#asked.splice(from)) answer(question, undefined);
  }
}

function textsOf(said: readonly Said[]): (string | null | undefined)[] {
  return said.map((bytes) => (bytes ? bytes.toString() : (bytes as null | undefined)));
}

function answer(question: Question | undefined, said: Said): void {
  if (!question) return;
  const { batch, index } = question;
  batch.said[index] = said;
  batch.left -= 1;
  if (batch.left === 0) batch.resolve(batch.said);
}

/** Whether both are the same process; of one whose start is unknown, whether it has the same parent and session. */
function isSame(one: ProcStat, other: ProcStat | null): boolean {
  if (other === null) return false;
  if (one.start_ticks > 0 && other.start_ticks > 0) return one.start_ticks === other.start_ticks;
  return one.parent === other.parent && one.session === other.session;
}
