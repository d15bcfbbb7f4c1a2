import { sleep } from '../base/clock.ts';
import { Store } from '../base/store.ts';

/** Whether the server answers; `away` from the first request that reached nobody until it is back. */
export const connection = new Store<'there' | 'away'>('there');

const FIRST_MS = 500;
const MOST_MS = 10_000;

/** Where the server's API begins: the page lies at `console/` beside it. */
export const ROOT = new URL('../', document.baseURI);

/** Notes that nobody answers, and asks again until somebody does. */
export function noteAway(): void {
  if (connection.value === 'away') return;
  connection.set('away');
  void untilBack();
}

async function untilBack(): Promise<void> {
  for (let wait_ms = FIRST_MS; ; wait_ms = Math.min(wait_ms * 2, MOST_MS)) {
    await sleep(wait_ms);
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
