import type { Browser, Page } from 'playwright-core';
import { sleepMs } from '../support/numbers.ts';

/** Runs in the page. */
const COLLECT = `(() => {
  globalThis.frame_times = [];
  let before = 0;
  const onFrame = (now) => {
    if (before !== 0) frame_times.push(now - before);
    before = now;
    requestAnimationFrame(onFrame);
  };
  requestAnimationFrame(onFrame);
})()`;
const FORGET = 'globalThis.frame_times.length = 0';

/** Begins to note the time between the animation frames of a page. */
export async function collectFrames(page: Page): Promise<void> {
  await page.evaluate(COLLECT);
}

/** The times between the animation frames that follow, in ms. */
export async function framesFor(page: Page, duration_ms: number): Promise<number[]> {
  await page.evaluate(FORGET);
  await sleepMs(duration_ms);
  return JSON.parse(await page.evaluate('JSON.stringify(frame_times)'));
}

interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  /** In µs. */
  ts: number;
  dur?: number;
  /** Processor time, in µs. */
  tdur?: number;
  args?: { name?: string };
}

const CATEGORIES = ['devtools.timeline', 'disabled-by-default-devtools.timeline', '__metadata'];

/**
 * The processor time of a page's main thread for each of its frames, in ms, while `during` runs: of the tasks between one
 * frame's callbacks and the next one's. Tracing itself takes a part of it.
 */
export async function mainThreadFor(
  browser: Browser,
  page: Page,
  during: () => Promise<unknown>,
): Promise<number[]> {
  await browser.startTracing(page, { categories: CATEGORIES });
  await during();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as {
    traceEvents: TraceEvent[];
  };
  return busyTimes(traceEvents);
}

/** Of the thread that has most frames: the only page that is drawn. */
function busyTimes(events: readonly TraceEvent[]): number[] {
  const frames = Map.groupBy(
    events.filter(({ name }) => name === 'FireAnimationFrame'),
    ({ pid, tid }) => `${pid}.${tid}`,
  );
  const [thread, own] = [...frames].sort(([, a], [, b]) => b.length - a.length)[0] ?? ['', []];
  const starts = own.map(({ ts }) => ts).sort((a, b) => a - b);
  const tasks = events
    .filter(({ name, ph, pid, tid }) => name === 'RunTask' && ph === 'X' && `${pid}.${tid}` === thread)
    .sort((a, b) => a.ts - b.ts);
  const busy_ms = new Array<number>(Math.max(0, starts.length - 1)).fill(0);
  let at = 0;
  for (const { ts, dur = 0, tdur = dur } of tasks) {
    const end = ts + dur;
    // The task that calls a frame's callbacks begins shortly before them, and is that frame's.
    while (at < busy_ms.length && (starts[at + 1] as number) < end) at += 1;
    if (at < busy_ms.length && end > (starts[0] as number)) busy_ms[at] = (busy_ms[at] ?? 0) + tdur / 1_000;
  }
  return busy_ms;
}
