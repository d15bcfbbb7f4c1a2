import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { nowMs } from './numbers.ts';
import { serve } from './program.ts';

export type BareSpawnVerbs = {
  /** Spawns it so often, one after another; gives how long each took to be spawned. */
  spawn: (input: { command: string[]; count: number }) => Promise<number[]>;
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
  spawn: async ({ command, count }) => {
    const took: number[] = [];
    for (let i = 0; i < count; i++) took.push(await spawnOnce(command));
    return took;
  },
});
