import type { Bench, Benchmark } from './support/bench.ts';
import { type FileChangesVerbs, OPERATIONS, type Operation } from './support/file-changes.ts';
import { median, nowMs, sleepMs } from './support/numbers.ts';
import { cpuMs, memoryBytes } from './support/process-figures.ts';
import type { Program } from './support/program.ts';
import { sized } from './support/size.ts';
import { comparison, type Row } from './support/table.ts';
import type { WatchWayVerbs, Way } from './support/watch-way.ts';

const DIRECTORIES = sized(5_000, 50);
const FILES_PER_DIRECTORY = 20;
const FILES = DIRECTORIES * FILES_PER_DIRECTORY;
const TURNS = sized(3, 1);
const SETTLE_MS = sized(2_000, 200);
/** Of each operation, in a tree of its own. */
const CHANGES = sized(2_000, 20);
const CHANGED_DIRECTORIES = sized(100, 5);
const CHURNED = sized(500, 10);
const ROUNDS = sized(50, 2);
const CHANGES_PER_ROUND = 100;
const TOLD_WITHIN_MS = 180_000;
/** The private interface is worth its risk only if it saves more than a tenth. */
const WORTH = { wanted: 0.9, wants: 'at most' } as const;

type Figures = Record<Way, number[]>;
type WayProgram = Program<WatchWayVerbs>;
type ChangesProgram = Program<FileChangesVerbs>;

/** Watches as the product sets them beside those that chokidar sets by its public interface alone, in turn. */
export const watchWays: Benchmark = {
  name: 'watch-ways',
  async run(bench) {
    const changes = await bench.program<FileChangesVerbs>(
      new URL('./support/file-changes.ts', import.meta.url),
    );
    const dir = bench.folder();
    const tree = { dir, directories: DIRECTORIES, files_per_directory: FILES_PER_DIRECTORY };
    await changes.ask('tree', tree);
    await measureStart(bench, 'watches alone', (program, way) => program.ask('watches', { ...tree, way }));
    await measureStart(bench, 'complete', (program, way) => program.ask('engine', { dir, way }));
    await measureBurst(bench, changes);
    await playRounds(bench);
  },
};

const newProgram = (bench: Bench) =>
  bench.program<WatchWayVerbs>(new URL('./support/watch-way.ts', import.meta.url));

/** Does something by both ways, in turn, each time in a new process. */
async function inTurns(bench: Bench, turn: (program: WayProgram, way: Way) => Promise<void>): Promise<void> {
  for (let i = 0; i < TURNS; i++) {
    for (const way of ['public', 'product'] as const) {
      const program = await newProgram(bench);
      await turn(program, way);
      await program.stop();
    }
  }
}

const figures = (): Figures => ({ public: [], product: [] });

function row(name: string, unit: string, { public: bare, product: ours }: Figures): Row {
  return comparison({
    name: `${name}; bare: chokidar's public interface`,
    ...{ bare: median(bare), ours: median(ours), unit },
    ...WORTH,
  });
}

async function measureStart(
  bench: Bench,
  name: string,
  start: (program: WayProgram, way: Way) => Promise<void>,
): Promise<void> {
  const [time, cpu, memory] = [figures(), figures(), figures()];
  await inTurns(bench, async (program, way) => {
    await program.ask('reported', 'create');
    const before = { cpu_ms: cpuMs(program.pid), memory_bytes: memoryBytes(program.pid), at_ms: nowMs() };
    await start(program, way);
    time[way].push(nowMs() - before.at_ms);
    await sleepMs(SETTLE_MS);
    cpu[way].push(cpuMs(program.pid) - before.cpu_ms);
    memory[way].push((memoryBytes(program.pid) - before.memory_bytes) / 1e6);
  });
  const of = `watch of ${FILES} files in ${DIRECTORIES} directories, ${name}`;
  bench.report(row(`${of}: time`, 'ms', time));
  bench.report(row(`${of}: CPU time`, 'ms', cpu));
  bench.report(row(`${of}: memory`, 'MB', memory));
}

async function measureBurst(bench: Bench, changes: ChangesProgram): Promise<void> {
  const [first, later] = [figures(), figures()];
  await inTurns(bench, async (program, way) => {
    const tree = { dir: bench.folder(), directories: CHANGED_DIRECTORIES };
    await changes.ask('tree', { ...tree, files_per_directory: 0 });
    await program.ask('engine', { dir: tree.dir, way });
    first[way].push(await cpuPerChange(program, changes, tree));
    await program.ask('churn', { dir: tree.dir, directories: CHURNED });
    later[way].push(await cpuPerChange(program, changes, tree));
  });
  bench.report(row('CPU time per watched change', 'µs', first));
  bench.report(row(`the same once ${CHURNED} directories were made and removed`, 'µs', later));
}

/** In µs, over all operations. Throws if a change is not reported. */
async function cpuPerChange(
  program: WayProgram,
  changes: ChangesProgram,
  tree: { dir: string; directories: number },
): Promise<number> {
  const before_ms = cpuMs(program.pid);
  for (const operation of OPERATIONS) {
    const before = await program.ask('reported', operation);
    await changes.ask('change', { ...tree, files: CHANGES, operation });
    await reportedAll(program, operation, before + CHANGES);
  }
  return ((cpuMs(program.pid) - before_ms) * 1_000) / (CHANGES * OPERATIONS.length);
}

async function reportedAll(program: WayProgram, operation: Operation, wanted: number): Promise<void> {
  const end_ms = nowMs() + TOLD_WITHIN_MS;
  for (;;) {
    const reported = await program.ask('reported', operation);
    if (reported >= wanted) return;
    if (nowMs() > end_ms) throw new Error(`${reported} of ${wanted} were reported: ${operation}`);
    await sleepMs(20);
  }
}

/** Random changes: the reported tree must be the disk's. */
async function playRounds(bench: Bench): Promise<void> {
  const programs = { public: await newProgram(bench), product: await newProgram(bench) };
  const broken: Record<Way, string[]> = { public: [], product: [] };
  for (let seed = 1; seed <= ROUNDS; seed++) {
    for (const way of ['public', 'product'] as const) {
      const why = await programs[way].ask('round', { way, seed, changes: CHANGES_PER_ROUND });
      if (why !== null) broken[way].push(`seed ${seed}: ${why}`);
    }
  }
  for (const why of [...broken.public, ...broken.product]) console.log(`  ${why}`);
  bench.report({
    name: `rounds of ${ROUNDS} in which the reported tree was not the disk's; bare: chokidar's public interface`,
    ...{ bare: `${broken.public.length}`, ours: `${broken.product.length}`, ratio: '', wanted: '0' },
    verdict: broken.product.length === 0 ? 'ok' : 'broken',
  });
}
