import { constants, writeFileSync } from 'node:fs';
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { readGroups } from '../../base/linux/cgroup.ts';

/** The longest record of the kernel's log: PRINTK_MESSAGE_MAX and its header. */
const RECORD_BYTES = 8 * 1024;
const KILLED = /Killed process (\d+)/;
/** Children are chosen before the daemon, whatever protects the daemon. */
const SCORE_ABOVE = 100;
const SCORE_MAX = 1_000;
const REMEMBERED_MAX = 1_000;
/** The log's clock and the start times of processes may differ by this. */
const SLACK_MS = 1_000;

/**
 * Distinguishes the kernel's out-of-memory killer from other senders of SIGKILL: by the kernel's log, which names the
 * pid, or if that cannot be read by the counters of the daemon's memory cgroup.
 */
export class OomWatch {
  #kernel_log: FileHandle | null = null;
  /** Time of the kill in ms after boot, by pid. */
  readonly #killed = new Map<number, number>();
  #reading: Promise<void> = Promise.resolve();
  #kills_seen = 0;
  /** The daemon's own oom_score_adj at its start, 0 if it cannot be read. */
  #own_score = 0;

  /** Opens the kernel's log if possible, and reads the counters as they are now. */
  async open(): Promise<void> {
    this.#kernel_log = await open('/dev/kmsg', constants.O_RDONLY | constants.O_NONBLOCK).catch(() => null);
    this.#kills_seen = await countKills();
    this.#own_score = Number(await readFile('/proc/self/oom_score_adj', 'latin1').catch(() => '0'));
  }

  /** Lets the kernel choose this process before the daemon when memory runs out. */
  rankBefore(pid: number): void {
    const score = Math.min(SCORE_MAX, Math.max(0, this.#own_score + SCORE_ABOVE));
    try {
      writeFileSync(`/proc/${pid}/oom_score_adj`, String(score));
    } catch {} // it has ended already
  }

  /** Closes the kernel's log. */
  async close(): Promise<void> {
    await this.#reading;
    await this.#kernel_log?.close();
    this.#kernel_log = null;
  }

  /** Whether the killer ended the process with this pid, which started `started_ms` after boot. */
  async hasKilled(pid: number, started_ms: number): Promise<boolean> {
    this.#reading = this.#reading.then(() => this.#readLog());
    await this.#reading;
    const killed_ms = this.#killed.get(pid);
    const kills = await countKills();
    const has_counted = kills > this.#kills_seen;
    if (has_counted) this.#kills_seen += 1; // one kill accounts for one process
    if (killed_ms !== undefined && killed_ms >= started_ms - SLACK_MS) return true;
    return has_counted && this.#kernel_log === null;
  }

  async #readLog(): Promise<void> {
    const buffer = Buffer.allocUnsafe(RECORD_BYTES);
    while (this.#kernel_log) {
      try {
        const { bytesRead } = await this.#kernel_log.read(buffer, 0, buffer.length, null);
        this.#remember(buffer.toString('latin1', 0, bytesRead));
      } catch (error) {
        // EPIPE: records were overwritten before they were read, the next read continues. EAGAIN: no more for now.
        if ((error as NodeJS.ErrnoException).code !== 'EPIPE') return;
      }
    }
  }

  /** A record is `priority,sequence,microseconds,flags;message`. */
  #remember(record: string): void {
    const pid = KILLED.exec(record)?.[1];
    if (pid === undefined) return;
    this.#killed.set(Number(pid), Number(record.split(',', 3)[2]) / 1_000);
    const oldest = this.#killed.keys().next().value;
    if (this.#killed.size > REMEMBERED_MAX && oldest !== undefined) this.#killed.delete(oldest);
  }
}

/** Out-of-memory kills in the daemon's memory cgroup, of either version; 0 if they cannot be read. */
async function countKills(): Promise<number> {
  for (const { controllers, path } of await readGroups('self')) {
    const file =
      controllers.length === 0
        ? `/sys/fs/cgroup${path}/memory.events`
        : controllers.includes('memory') && `/sys/fs/cgroup/memory${path}/memory.oom_control`;
    const kills = file && /^oom_kill (\d+)$/m.exec(await readFile(file, 'utf8').catch(() => ''))?.[1];
    if (kills) return Number(kills);
  }
  return 0;
}
