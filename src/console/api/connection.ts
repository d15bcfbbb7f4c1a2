import { type Backoff, backoffMs } from '../../contract/backoff.ts';
import { sleep } from '../base/clock.ts';
import { Store } from '../base/store.ts';

/** Whether the server answers; `away` from the first request that reached nobody until it is back. */
export const connection = new Store<'there' | 'away'>('there');

const BACKOFF: Backoff = { base_ms: 500, max_ms: 10_000 };

/** Where the server's API begins: the page lies at `console/` beside it. */
export const ROOT = new URL('../', document.baseURI);

/** Notes that nobody answers, and asks again until somebody does. */
export function noteAway(): void {
  if (connection.value === 'away') return;
  connection.set('away');
  void untilBack();
}

async function untilBack(): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await sleep(backoffMs(attempt, BACKOFF));
    if (await answers()) return connection.set('there');
  }
}

async function answers(): Promise<boolean> {
  try {
    const { status } = await fetch(new URL('healthz', ROOT), { cache: 'no-store' });
    return status === 200;
  } catch {
    return false;
  }
}
