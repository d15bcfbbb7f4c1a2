import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, vi } from 'vitest';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { readStatNow } from '../../../src/base/linux/procfs.ts';
import type { ProcessEvent } from '../../../src/contract/events.ts';
import type { ProcessView } from '../../../src/contract/processes.ts';
import type { ListPlace, ProcessPage } from '../../../src/process/registry.ts';
import { Supervisor, type SupervisorOptions } from '../../../src/process/supervisor.ts';
import type { TreeRoot } from '../../../src/process/tree/tree.ts';

/** A supervisor on a folder of its own, with the events it stored in their order. */
export interface Harness {
  supervisor: Supervisor;
  events: ProcessEvent[];
  keys: string[];
  directory: string;
  /** Another daemon on the same folder, as after a death of the first. */
  again(): Promise<Harness>;
}

// Real processes on a machine that others use, too.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const undo: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const release of undo.splice(0).reverse()) await release();
});

export async function start(
  options: Partial<SupervisorOptions> = {},
  clock: Clock = systemClock,
): Promise<Harness> {
  const root = options.directory ?? (await mkdtemp(join(tmpdir(), 'sandboxd-process-')));
  if (!options.directory) undo.push(() => rm(root, { recursive: true, force: true }));
  return launch({ directory: options.directory ?? join(root, 'processes'), ...options }, clock);
}

async function launch(
  options: Partial<SupervisorOptions> & { directory: string },
  clock: Clock,
): Promise<Harness> {
  const events: ProcessEvent[] = [];
  const keys: string[] = [];
  const supervisor = new Supervisor({
    clock,
    log: pino({ level: 'silent' }),
    emit: async (event, key) => {
      events.push(event);
      keys.push(key);
    },
    environment: () => ({ PATH: process.env.PATH ?? '' }),
    default_user: null,
    grace_ms: 2_000,
    random: () => 0.5,
    ...options,
  });
  undo.push(() => supervisor.stop());
  await supervisor.start();
  return { supervisor, events, keys, directory: options.directory, again: () => launch(options, clock) };
}

/** The root of a tree whose first process is this one, which runs. */
export function runningRoot(pid = 0, tag: string): TreeRoot {
  return { pid, start_ticks: 0, tag, ended_ticks: null, proven: new Map() };
}

/** Every process that is kept, in the order in which they were created. */
export async function listOf(supervisor: Supervisor): Promise<ProcessView[]> {
  const listed: ProcessView[] = [];
  for (let place: ListPlace | null = null; ; ) {
    const { processes, next }: ProcessPage = await supervisor.page(1_000, place);
    listed.push(...processes);
    place = next;
    if (next === null) return listed.reverse();
  }
}

/** The command that runs a program of `fixtures/programs`. */
export function program(name: string, ...args: string[]): string[] {
  return [process.execPath, join(import.meta.dirname, '../../../fixtures/programs', name), ...args];
}

/** Everything that is kept of a stream, as text. */
export async function outputOf(
  supervisor: Supervisor,
  process_id: string,
): Promise<{ stdout: string; stderr: string }> {
  const { stdout, stderr } = await supervisor.outputTail(process_id, 64 * 1024 * 1024);
  return { stdout: stdout.toString(), stderr: stderr.toString() };
}

/** Whether a process with this pid runs; one that has ended and was not waited for does not. */
export async function isAlive(pid: number): Promise<boolean> {
  const stat = readStatNow(pid);
  return stat !== null && stat.state !== 'Z';
}
