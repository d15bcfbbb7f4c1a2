import type { ListedProcess, Sandbox } from '../../client/sandbox.ts';
import { EXIT, Failure } from '../failure.ts';

/** Far more than a daemon keeps. */
const PROCESSES_MAX = 100_000;

/**
 * Every process of a daemon as it answers, those started last last. Throws `Failure` where the list has no end: the daemon
 * may be hostile. Contract section 4, `GET /processes`.
 */
export async function answeredProcesses(sandbox: Sandbox): Promise<(ListedProcess | null)[]> {
  const listed: ListedProcess[] = [];
  for await (const process of sandbox.processes()) {
    listed.push(process);
    if (listed.length > PROCESSES_MAX) throw new Failure(EXIT.failed, 'the list of processes has no end');
  }
  return listed.reverse();
}

/** The same, those that have an id. */
export async function listProcesses(sandbox: Sandbox): Promise<ListedProcess[]> {
  const answered = await answeredProcesses(sandbox);
  return answered.filter((each): each is ListedProcess => typeof each?.process_id === 'string');
}
