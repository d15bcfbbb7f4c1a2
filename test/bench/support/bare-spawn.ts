import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { nowMs } from './numbers.ts';
import { serve } from './program.ts';

export type BareSpawnVerbs = {
  /** Spawns it so often, one after another; gives how long each took to be spawned. */
  spawn: (input: { command: string[]; count: number }) => Promise<number[]>;
  /** Spawns it so often, one after another, until its first output; then as often, so many at once. */
  output: (input: {
    command: string[];
    count: number;
    at_once: number;
  }) => Promise<{ first_ms: number[]; per_second: number }>;
  /** Spawns it and reads its stdout from a pipe; gives how much that was, and how long it took. */
  read: (input: { command: string[] }) => Promise<{ bytes: number; took_ms: number }>;
};

async function spawnOnce([program = '', ...args]: string[]): Promise<number> {
  const began_ms = nowMs();
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const closed = once(child, 'close');
  child.stdout.resume();
  child.stderr.resume();
  await once(child, 'spawn');
  const took_ms = nowMs() - began_ms;
  await closed;
  return took_ms;
}

async function firstOutput([program = '', ...args]: string[]): Promise<number> {
  const began_ms = nowMs();
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const closed = once(child, 'close');
  child.stderr.resume();
  await once(child.stdout, 'data');
  const took_ms = nowMs() - began_ms;
  await closed;
  return took_ms;
}

async function read([program = '', ...args]: string[]): Promise<{ bytes: number; took_ms: number }> {
  const began_ms = nowMs();
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  let bytes = 0;
  child.stdout.on('data', (data: Buffer) => {
    bytes += data.length;
  });
  await once(child, 'close');
  return { bytes, took_ms: nowMs() - began_ms };
}

serve<BareSpawnVerbs>({
  read: ({ command }) => read(command),
  output: async ({ command, count, at_once }) => {
    const first_ms: number[] = [];
    for (let i = 0; i < count; i++) first_ms.push(await firstOutput(command));
    const began_ms = nowMs();
    let started = 0;
    const several = async () => {
      while (started++ < count) await firstOutput(command);
    };
    await Promise.all(Array.from({ length: at_once }, several));
    return { first_ms, per_second: count / ((nowMs() - began_ms) / 1000) };
  },
  spawn: async ({ command, count }) => {
    const took: number[] = [];
    for (let i = 0; i < count; i++) took.push(await spawnOnce(command));
    return took;
  },
});
