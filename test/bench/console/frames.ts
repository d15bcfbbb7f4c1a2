import { once } from 'node:events';
import { Agent, request } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { has_browser, launchBrowser } from '../../support/console/chromium.ts';
import type { Bench, Benchmark } from '../support/bench.ts';
import { DOWN_URL } from '../support/daemon.ts';
import { type ManagedSandbox, managedSandbox } from '../support/managed-sandbox.ts';
import { percentile, sleepMs } from '../support/numbers.ts';
import { payloadOf } from '../support/payload.ts';
import { sized } from '../support/size.ts';
import { comparison, figure, skipped } from '../support/table.ts';
import { collectFrames, framesFor, mainThreadFor } from './frame-times.ts';

const NAME = 'console-frames';
/** 10 000 a minute. */
const EVENTS_PER_SECOND = 170;
/** What the list holds before. */
const BEFORE = sized(2_000, 300);
const TURNS = sized(3, 1);
const TURN_MS = sized(6_000, 500);
const WARM_UP_MS = sized(2_000, 300);
const SHARES = [0.5, 0.95, 0.99];
const RATIO = 1.05;
const FRAME_MS = 16;
const LANES = 8;
const TICK_MS = 5;

/**
 * How smoothly the console's list of events is drawn while 10 000 a minute come, against an empty page of the same browser,
 * in turn and under the same load: the time between animation frames, which is never below that of the screen (16.7 ms), and
 * the processor time that the page's main thread takes for each, which a busy machine does not make longer.
 */
export const consoleFrames: Benchmark = {
  name: NAME,
  async run(bench) {
    if (!has_browser) return bench.report(skipped(NAME, 'chromium is not installed'));
    // What is delivered would take from the browser's processors what it does not take from a reader's.
    const webhook = { url: DOWN_URL };
    const sandbox = await managedSandbox(bench, { webhook, resources: { memory: '512Mi', cpu: 1 } });
    const publisher = new Publisher(sandbox.socket_path);
    bench.onEnd(() => publisher.end());
    await publisher.burst(BEFORE);
    const browser = await launchBrowser();
    bench.onEnd(() => browser.close());
    publisher.begin();
    const bare_ms: number[] = [];
    const ours_ms: number[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      bare_ms.push(...(await drawn(await emptyPage(browser))));
      ours_ms.push(...(await drawn(await consolePage(browser, sandbox))));
    }
    const rate = `${figure(publisher.per_second)} events/s`;
    for (const share of SHARES) {
      bench.report(
        comparison({
          name: `between frames of the list at ${rate}, p${share * 100}; bare: an empty page`,
          bare: percentile(bare_ms, share),
          ours: percentile(ours_ms, share),
          unit: 'ms',
          wanted: RATIO,
          wants: 'at most',
        }),
      );
    }
    const bare_busy_ms = await busy(browser, await emptyPage(browser));
    const ours_busy_ms = await busy(browser, await consolePage(browser, sandbox));
    for (const share of SHARES) reportBusy(bench, share, bare_busy_ms, ours_busy_ms);
  },
};

function reportBusy(bench: Bench, share: number, bare: number[], ours: number[]): void {
  const [bare_ms, ours_ms] = [percentile(bare, share), percentile(ours, share)];
  const is_bound = share === 0.95;
  bench.report({
    name: `processor time of the page's main thread for a frame, p${share * 100}; bare: an empty page`,
    bare: `${figure(bare_ms)} ms`,
    ours: `${figure(ours_ms)} ms`,
    ratio: '',
    wanted: is_bound ? `≤ ${FRAME_MS} ms` : '',
    verdict: is_bound && ours_ms > FRAME_MS ? 'missed' : 'ok',
  });
}

async function drawn(page: Page): Promise<number[]> {
  const times_ms = await framesFor(page, TURN_MS);
  await page.context().close();
  return times_ms;
}

async function busy(browser: Browser, page: Page): Promise<number[]> {
  const times_ms = await mainThreadFor(browser, page, () => sleepMs(TURN_MS));
  await page.context().close();
  return times_ms;
}

async function newPage(browser: Browser): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 } });
  return context.newPage();
}

async function emptyPage(browser: Browser): Promise<Page> {
  const page = await newPage(browser);
  await page.goto('about:blank');
  await collectFrames(page);
  await sleepMs(WARM_UP_MS);
  return page;
}

/** Returns when the list shows the newest events, and more have come. */
async function consolePage(browser: Browser, { manager_url, token, sandbox_id }: ManagedSandbox) {
  const page = await newPage(browser);
  await page.addInitScript((value) => sessionStorage.setItem('sandboxd-token', value), token);
  await page.goto(`${manager_url}/console/#/sandboxes/${sandbox_id}/events`);
  await page.getByText('live', { exact: true }).waitFor();
  await collectFrames(page);
  const end = page.locator('.line').last();
  const before = await end.innerText();
  while ((await end.innerText()) === before) await sleepMs(50);
  await sleepMs(WARM_UP_MS);
  return page;
}

/** Publishes in a sandbox, as its programs do. */
class Publisher {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: LANES });
  readonly #socket_path: string;
  #published = 0;
  #timer: NodeJS.Timeout | undefined;
  #began_ms = 0;
  #due = 0;
  #accepted = 0;

  constructor(socket_path: string) {
    this.#socket_path = socket_path;
  }

  /** So many at once. */
  async burst(count: number): Promise<void> {
    const lane = async () => {
      while (this.#published < count) await this.#publish();
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    if (this.#accepted < count) throw new Error(`${count - this.#accepted} publishes were refused`);
  }

  /** From now on at the steady rate. */
  begin(): void {
    this.#began_ms = performance.now();
    this.#accepted = 0;
    this.#timer = setInterval(() => {
      const due = ((performance.now() - this.#began_ms) / 1_000) * EVENTS_PER_SECOND;
      for (; this.#due < due; this.#due++) void this.#publish();
    }, TICK_MS);
  }

  /** How many of a second have been accepted since. */
  get per_second(): number {
    return this.#accepted / ((performance.now() - this.#began_ms) / 1_000);
  }

  end(): void {
    clearInterval(this.#timer);
    this.#agent.destroy();
  }

  async #publish(): Promise<void> {
    const body = `{"payload":${payloadOf(this.#published++)}}`;
    const publishing = request({
      socketPath: this.#socket_path,
      path: '/api/v1/webhook/publish',
      method: 'POST',
      agent: this.#agent,
      headers: { host: 'localhost', 'content-type': 'application/json', 'content-length': body.length },
    }).end(body);
    try {
      const [response] = await once(publishing, 'response');
      response.resume();
      await once(response, 'end');
      if (response.statusCode === 202) this.#accepted += 1;
    } catch {
      // It has ended meanwhile.
    }
  }
}
