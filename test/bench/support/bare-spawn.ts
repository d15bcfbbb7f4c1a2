import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { nowMs } from './numbers.ts';
import { serve } from './program.ts';

export type BareSpawnVerbs = {
  /** Spawns it so often, one after another; gives how long each took to be spawned. */
  spawn: (input: { command: string[]; count: number }) => Promise<number[]>;
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

serve<BareSpawnVerbs>({
  spawn: async ({ command, count }) => {
    const took: number[] = [];
    for (let i = 0; i < count; i++) took.push(await spawnOnce(command));
    return took;
  },
});
