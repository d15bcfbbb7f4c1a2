import { fileURLToPath } from 'node:url';
import type { BareSpawnVerbs } from './support/bare-spawn.ts';
import type { Benchmark } from './support/bench.ts';
import { DOWN_URL } from './support/daemon.ts';
import { median, nowMs } from './support/numbers.ts';
import type { OutputClientVerbs } from './support/output-client.ts';
import { ProcessClient } from './support/process-client.ts';
import { highest, memoryBytes } from './support/process-figures.ts';
import { sized } from './support/size.ts';
import { comparison, figure } from './support/table.ts';

const PROGRAM = fileURLToPath(new URL('../../fixtures/programs/flood.mjs', import.meta.url));
const MIB = 1024 * 1024;
const OUTPUT_BYTES = sized(1024 * MIB, 16 * MIB);
const WARM_UP_BYTES = sized(64 * MIB, 1 * MIB);
const MORE_MIB = 16;
const TURNS = sized(3, 1);

/** Much output that is followed without loss, against a pipe that is read. */
export const processOutput: Benchmark = {
  name: 'process-output',
  async run(bench) {
    const bare = await bench.program<BareSpawnVerbs>(new URL('./support/bare-spawn.ts', import.meta.url));
    const daemon = await bench.daemon({ webhook_url: DOWN_URL });
    const client = new ProcessClient(daemon);
    const reader = await bench.program<OutputClientVerbs>(
      new URL('./support/output-client.ts', import.meta.url),
    );
    /** How each kind of reader has the output, and in what time. */
    const readers = {
      bare: (command: string[]) => bare.ask('read', { command }),
      bytes: async (command: string[]) => {
        const began_ms = nowMs();
        const { bytes, ended_ms } = await reader.ask('follow', await client.startLossless(command));
        return { bytes, took_ms: ended_ms - began_ms };
      },
      run: (command: string[]) => bare.ask('read', { command: daemon.sandboxctl('run', '--', ...command) }),
    };
    /** MiB/s of all, one after another. */
    const turn = async (bytes: number) => {
      const command = [process.execPath, PROGRAM, String(bytes)];
      const per_second = { bare: 0, bytes: 0, run: 0 };
      for (const kind of ['bare', 'bytes', 'run'] as const) {
        const read = await readers[kind](command);
        if (read.bytes !== bytes) throw new Error('output is missing');
        per_second[kind] = bytes / MIB / (read.took_ms / 1000);
      }
      return per_second;
    };
    await turn(WARM_UP_BYTES);
    const before = memoryBytes(daemon.pid);
    const all: { bare: number; bytes: number; run: number }[] = [];
    const most: number[] = [];
    for (let i = 0; i < TURNS; i++) {
      const read = turn(OUTPUT_BYTES);
      most.push(await highest(read, () => memoryBytes(daemon.pid)));
      all.push(await read);
    }
    client.close();
    const mib = OUTPUT_BYTES / MIB;
    for (const [kind, name] of [
      ['bytes', `${mib} MiB of output followed without loss; bare: a pipe`],
      ['run', `${mib} MiB through sandboxctl run, with its start; bare: a pipe`],
    ] as const) {
      bench.report(
        comparison({
          name,
          ...{ bare: median(all.map((each) => each.bare)), ours: median(all.map((each) => each[kind])) },
          ratio: median(all.map((each) => each[kind] / each.bare)),
          ...{ unit: 'MiB/s', wanted: 0.5, wants: 'at least' },
        }),
      );
    }
    const more = (most[0] ?? Number.NaN) - before;
    bench.report({
      name: 'memory meanwhile; bare: before',
      bare: `${figure(before / MIB)} MiB`,
      ours: `+${figure(more / MIB)} MiB`,
      ratio: '',
      wanted: `≤ +${MORE_MIB} MiB`,
      verdict: more <= MORE_MIB * MIB ? 'ok' : 'missed',
    });
  },
};
