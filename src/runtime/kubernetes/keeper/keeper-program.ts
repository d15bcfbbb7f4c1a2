import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { workingClock } from '../../../base/clock.ts';
import { Keeper } from './keeper.ts';
import { KEEPER_PORT } from './keeper-protocol.ts';

/** The program of the container `keeper`: `keeper.cjs --key-file <path> --control <folder> --volume <folder>`. */
async function run(): Promise<void> {
  const string = { type: 'string' } as const;
  const { values } = parseArgs({ options: { 'key-file': string, control: string, volume: string } });
  // The first process of a container is spared what would end another: its Pod would wait for all of its grace.
  process.once('SIGTERM', () => process.exit(0));
  const { 'key-file': key_file = '', control = '', volume = '' } = values;
  await new Keeper(readFileSync(key_file), { control, volume }, workingClock).start(KEEPER_PORT);
}

void run();
