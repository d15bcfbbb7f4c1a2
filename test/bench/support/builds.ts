import { fileURLToPath } from 'node:url';
import { execaNode } from 'execa';
import { median } from './numbers.ts';
import { figure, type Row, textTable } from './table.ts';

/** How often each build runs a benchmark when two are compared. */
const TURNS = 3;
const RUN = fileURLToPath(new URL('../run.ts', import.meta.url));

/** What is run: the `dist` folders of the builds, this one's first. */
export interface Builds {
  builds: string[];
  rounds: string;
  is_short: boolean;
}

/** A row and the build that it was measured with. */
export interface BuildRow {
  build: string;
  row: Row;
}

/** Runs benchmarks with each build in turn, every one in a process of its own. Returns all rows of all turns. */
export async function inBuilds(names: string[], { builds, rounds, is_short }: Builds): Promise<BuildRow[]> {
  const results: BuildRow[] = [];
  for (const name of names) {
    for (let turn = 0; turn < (builds.length > 1 && !is_short ? TURNS : 1); turn++) {
      for (const build of turn % 2 === 0 ? builds : builds.toReversed()) {
        console.log(`${name}, ${build}`);
        const running = execaNode(RUN, ['--rounds', rounds, ...(is_short ? ['--short'] : []), name], {
          env: { BENCH_DIST: build, BENCH_SHORT: is_short ? '1' : '' },
          stdio: ['ignore', 'ignore', 'inherit'],
          buffer: false,
          reject: false,
        });
        // Until it has ended.
        for await (const message of running.getEachMessage()) {
          const row = message as unknown as Row;
          console.log(`  ${row.name}: ${row.bare} → ${row.ours} ${row.ratio} ${row.verdict}`);
          results.push({ build, row });
        }
      }
    }
  }
  return results;
}

/** A line for each row's name: per build the median of what it came to and of its ratio to the bare operation. */
export function comparedTable(results: BuildRow[], builds: string[]): string {
  const names = [...new Set(results.map(({ row }) => row.name))];
  const headings = ['benchmark', ...builds.flatMap((build) => [build, '× bare']), 'this ÷ other'];
  const lines = names.map((name) => {
    const sides = builds.map((build) =>
      results.filter((each) => each.build === build && each.row.name === name).map(({ row }) => row),
    );
    const [ours = Number.NaN, other = Number.NaN] = sides.map((rows) => middle(rows, 'ours'));
    return [
      name,
      ...sides.flatMap((rows) => [shown(rows, 'ours'), shown(rows, 'ratio')]),
      Number.isNaN(ours / other) ? '' : figure(ours / other),
    ];
  });
  return textTable([headings, ...lines]);
}

function middle(rows: Row[], side: 'ours' | 'ratio'): number {
  return median(rows.map(({ measured }) => measured?.[side] ?? Number.NaN));
}

/** Where a row has no numbers, what its last turn said. */
function shown(rows: Row[], side: 'ours' | 'ratio'): string {
  const value = middle(rows, side);
  return Number.isNaN(value) ? (rows.at(-1)?.[side] ?? '') : figure(value);
}
