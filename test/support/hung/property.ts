import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startConsumer } from '../consumer.ts';
import { eventually } from '../eventually.ts';
import { helpersOf } from '../hostile/samples.ts';
import { hungMount } from '../hung-mount.ts';
import { launch, type SandboxdProgram, startSandboxd } from '../sandboxd-program.ts';
import { scratchFolder } from '../scratch.ts';
import { failedChecks, failedPause } from './checks.ts';
import { FILES, PATIENCE_MS, type Place, type Scene, type Stage } from './place.ts';

/** How many places are tried at the same time: most of them wait. */
const AT_ONCE = 8;

/** Requests at each place, where all places wait in one daemon. */
const IN_COMPANY = 2;

/** What does not go on where a file system hangs, in a daemon for each place: a line each. */
export async function failuresAt(places: Place[]): Promise<string[]> {
  const failures: string[] = [];
  const waiting = [...places];
  const worker = async () => {
    for (let place = waiting.shift(); place; place = waiting.shift()) {
      const { name } = place;
      const found = await failuresOf(place).catch((error: Error) => [`the test: ${error.stack}`]);
      console.log(`${name}: ${found.length === 0 ? 'everything else goes on' : found.join('\n  ')}`);
      failures.push(...found.map((line) => `${name}: ${line}`));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return failures;
}

async function failuresOf(place: Place): Promise<string[]> {
  const stage = await staged(place);
  if (place.hangs_at_start) await stage.mount.hang();
  const consumer = await startConsumer();
  const { args = [], ...how } = place.launch?.(stage) ?? {};
  const webhook = ['--webhook-url', consumer.url.replace('127.0.0.1', 'localhost')];
  const daemon = launch([...webhook, '--shutdown-grace-ms', '1000', ...args], how);
  if (place.is_start) return failuresOfStart(stage, daemon);
  await within('the daemon is ready', daemon.logged('ready'));
  const scene = { ...stage, daemon, consumer };
  await place.prepare?.(scene);
  await stage.mount.hang();
  const touched = answersAt(place, scene);
  const [failures, answered] = await Promise.all([failedChecks(scene, place), touched]);
  failures.push(...answered);
  // Those of before have been answered: a pause and the end meet some that wait. What they are answered then is another
  // matter, such as that no process starts during a pause.
  for (const answer of place.touch?.(scene) ?? []) answer.catch(() => {});
  failures.push(...(await failedPause(scene)));
  return [...new Set([...failures, ...(await failuresOfEnd(scene, place))])];
}

/** Answers that the place should not have: a line each. */
async function answersAt({ touch, answers: wanted = [503] }: Place, scene: Scene): Promise<string[]> {
  const answers = await Promise.allSettled(touch?.(scene) ?? []);
  return answers.flatMap((answer) => {
    if (answer.status === 'rejected') return [`it is not answered: ${(answer.reason as Error).message}`];
    const { status, text } = answer.value;
    return wanted.includes(status) ? [] : [`it is answered ${status} ${text.slice(0, 200)}`];
  });
}

/**
 * What does not go on in one daemon while all these places wait at once. Nothing waits for their answers: a short form of
 * `failuresAt`, for places that need no start of their own.
 */
export async function failuresBeside(places: Place[]): Promise<string[]> {
  const stage = await staged({ name: '' });
  const consumer = await startConsumer();
  const daemon = await startSandboxd(['--webhook-url', consumer.url, '--shutdown-grace-ms', '1000']);
  const scene = { ...stage, daemon, consumer, at_once: IN_COMPANY };
  for (const place of places) await place.prepare?.(scene);
  await stage.mount.hang();
  for (const { touch } of places) for (const answer of touch?.(scene) ?? []) answer.catch(() => {});
  const failures = await failedChecks(scene, {});
  failures.push(...(await failedPause(scene)));
  return [...failures, ...(await failuresOfEnd(scene, {}))];
}

async function staged({ files = {} }: Place): Promise<Stage> {
  const folder = join(scratchFolder(), 'folder');
  mkdirSync(folder, { mode: 0o777 });
  return { folder, mount: await hungMount({ ...FILES, ...files }) };
}

/** SIGTERM ends the daemon beside what hangs; what it left behind ends once the file system answers. */
async function failuresOfEnd(
  { daemon, mount }: Scene,
  { exit_codes = [0] }: Pick<Place, 'exit_codes'>,
): Promise<string[]> {
  const helpers = helpersOf(daemon.pid);
  const failures = await ended(daemon, exit_codes);
  await mount.release();
  const left = () => helpers.filter((pid) => helpersOf(1).includes(pid));
  await eventually(() => {
    if (left().length > 0) throw new Error(`helpers are left: ${left()}`);
  }, PATIENCE_MS).catch((error: Error) => failures.push(error.message));
  return failures;
}

async function ended(daemon: SandboxdProgram, exit_codes: number[]): Promise<string[]> {
  try {
    // Not its pipes' end: others may have them.
    const exited = once(daemon.child, 'exit');
    daemon.child.kill('SIGTERM');
    const [code, signal] = await within('SIGTERM ends it', exited);
    return exit_codes.includes(code) ? [] : [`it ends with ${code ?? signal}`];
  } catch (error) {
    daemon.child.kill('SIGKILL');
    return [(error as Error).message];
  }
}

/** A start that waits for its operator's file: SIGTERM or SIGKILL ends it, at the latest once the file system answers. */
async function failuresOfStart({ mount }: Stage, daemon: SandboxdProgram): Promise<string[]> {
  await eventually(async () => {
    if ((await mount.waiting()) === 0) throw new Error('it does not ask the file system');
  }, PATIENCE_MS);
  daemon.child.kill('SIGTERM');
  await Promise.race([daemon.ended, sleep(2_000)]);
  const is_ended = daemon.child.exitCode !== null || daemon.child.signalCode !== null;
  console.log(`SIGTERM ${is_ended ? 'ends' : 'does not end'} a start that waits for the kernel`);
  daemon.child.kill('SIGKILL');
  await mount.release();
  await within('it ends once the file system answers', daemon.ended);
  return [];
}

async function within<Result>(what: string, work: Promise<Result>): Promise<Result> {
  const over = new AbortController();
  const late = sleep(PATIENCE_MS, undefined, { signal: over.signal }).then(() => {
    throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
  });
  late.catch(() => {});
  try {
    return await Promise.race([work, late]);
  } finally {
    over.abort();
  }
}
