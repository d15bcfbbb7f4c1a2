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
    /** MiB/s of both, one after another. */
    const turn = async (bytes: number) => {
      const command = [process.execPath, PROGRAM, String(bytes)];
      const { took_ms: bare_ms, bytes: bare_bytes } = await bare.ask('read', { command });
      const began_ms = nowMs();
      const { bytes: ours_bytes, ended_ms } = await reader.ask('follow', await client.startLossless(command));
      const ours_ms = ended_ms - began_ms;
      if (bare_bytes !== bytes || ours_bytes !== bytes) throw new Error('output is missing');
      const per_second = (ms: number) => bytes / MIB / (ms / 1000);
      return { bare: per_second(bare_ms), ours: per_second(ours_ms) };
    };
    await turn(WARM_UP_BYTES);
    const before = memoryBytes(daemon.pid);
    const all: { bare: number; ours: number }[] = [];
    const most: number[] = [];
    for (let i = 0; i < TURNS; i++) {
      const read = turn(OUTPUT_BYTES);
      most.push(await highest(read, () => memoryBytes(daemon.pid)));
      all.push(await read);
    }
    client.close();
    bench.report(
      comparison({
        name: `${OUTPUT_BYTES / MIB} MiB of output followed without loss; bare: a pipe`,
        ...{ bare: median(all.map((each) => each.bare)), ours: median(all.map((each) => each.ours)) },
        ratio: median(all.map((each) => each.ours / each.bare)),
        ...{ unit: 'MiB/s', wanted: 0.5, wants: 'at least' },
      }),
    );
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
