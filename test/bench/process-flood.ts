import { fileURLToPath } from 'node:url';
import type { Benchmark } from './support/bench.ts';
import { DOWN_URL } from './support/daemon.ts';
import { nowMs, sleepMs } from './support/numbers.ts';
import { ProcessClient } from './support/process-client.ts';
import { highest, memoryBytes } from './support/process-figures.ts';
import { sized } from './support/size.ts';
import { figure } from './support/table.ts';

const PROGRAM = fileURLToPath(new URL('../../fixtures/programs/flood.mjs', import.meta.url));
const MIB = 1024 * 1024;
const FLOOD_BYTES = sized(1024 * MIB, 32 * MIB);
const BLOCK_BYTES = 64 * 1024;
const KEPT_MIB = 8;
const MORE_MIB = 32;
const SETTLE_MS = sized(2_000, 200);

/** Much output through one process: what is kept is right, and the daemon does not grow. */
export const processFlood: Benchmark = {
  name: 'process-flood',
  async run(bench) {
    const daemon = await bench.daemon({ webhook_url: DOWN_URL });
    const client = new ProcessClient(daemon);
    // What the first process of all needs is not of the flood.
    await client.ask('POST', '/processes?wait_ms=60000', { command: flood(MIB) });
    await sleepMs(SETTLE_MS);
    const before = memoryBytes(daemon.pid);
    const began_ms = nowMs();
    const { process_id } = await client.ask('POST', '/processes', { command: flood(FLOOD_BYTES) });
    const ended = client.ask('GET', `/processes/${process_id}/wait`);
    const most = await highest(ended, () => memoryBytes(daemon.pid));
    const { exit_code } = await ended;
    const took_ms = nowMs() - began_ms;
    if (exit_code !== 0) throw new Error(`the program ended with ${exit_code}`);
    check(await client.output(process_id));
    client.close();
    const per_second = FLOOD_BYTES / MIB / (took_ms / 1000);
    bench.report({
      name: `${FLOOD_BYTES / MIB} MiB of output, ${figure(per_second)} MiB/s, memory; bare: before`,
      bare: `${figure(before / MIB)} MiB`,
      ours: `+${figure((most - before) / MIB)} MiB`,
      ratio: '',
      wanted: `< +${MORE_MIB} MiB`,
      verdict: most - before < MORE_MIB * MIB ? 'ok' : 'missed',
    });
  },
};

function flood(bytes: number): string[] {
  return [process.execPath, PROGRAM, String(bytes)];
}

/** Every kept byte is what the program wrote there. */
function check({ offset, bytes }: { offset: number; bytes: Buffer }): void {
  if (offset + bytes.length !== FLOOD_BYTES) throw new Error('the end of the output is missing');
  if (bytes.length < KEPT_MIB * MIB) throw new Error(`only ${bytes.length} bytes are kept`);
  const block = Buffer.alloc(BLOCK_BYTES, 'abcdefghijklmno\n');
  for (let at = 0; at < bytes.length; ) {
    const index = Math.floor((offset + at) / BLOCK_BYTES);
    block.write(index.toString(16).padStart(15, '0'));
    const skip = (offset + at) % BLOCK_BYTES;
    const length = Math.min(BLOCK_BYTES - skip, bytes.length - at);
    const is_right = bytes.subarray(at, at + length).equals(block.subarray(skip, skip + length));
    if (!is_right) throw new Error(`a byte in block ${index} is wrong`);
    at += length;
  }
}
