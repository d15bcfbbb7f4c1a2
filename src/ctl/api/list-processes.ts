import type { ProcessView } from '../../contract/processes.ts';
import { EXIT, Failure } from '../failure.ts';
import type { Client } from './client.ts';

/** Far more than a daemon keeps. */
const PROCESSES_MAX = 100_000;

interface Page {
  processes: unknown[];
  next_cursor: string | null;
}

/**
 * Every process of a daemon as it answers, those started last last. Throws `Failure` where the pages have no end: the daemon may be
 * hostile. Contract section 4, `GET /processes`.
 */
export async function answeredProcesses(client: Client): Promise<unknown[]> {
  const listed: unknown[] = [];
  for (let cursor: string | undefined; ; ) {
    const page: Page = await client.call<Page>('GET', '/processes', { query: { cursor } });
    for (const process of page.processes) listed.push(process);
    const next: string | null | undefined = page.next_cursor; // absent from a daemon before there were pages
    if (next === null || next === undefined) return listed.reverse();
    if (next === cursor || page.processes.length === 0 || listed.length > PROCESSES_MAX)
      throw new Failure(EXIT.failed, 'the list of processes has an invalid page');
    cursor = next;
  }
}

/** The same, those that have an id. */
export async function listProcesses(client: Client): Promise<ProcessView[]> {
  const answered = (await answeredProcesses(client)) as (ProcessView | null)[];
  return answered.filter((each) => typeof each?.process_id === 'string') as ProcessView[];
}
