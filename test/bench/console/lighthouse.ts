import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CHROMIUM, has_browser } from '../../support/console/chromium.ts';
import type { Bench, Benchmark } from '../support/bench.ts';
import { DOWN_URL } from '../support/daemon.ts';
import { managedSandbox } from '../support/managed-sandbox.ts';
import { IS_SHORT } from '../support/size.ts';
import { skipped } from '../support/table.ts';

const NAME = 'console-lighthouse';
const LIGHTHOUSE = 'lighthouse@13.5.0';
const CATEGORIES = ['performance', 'accessibility', 'best-practices'] as const;
const DEVICES = ['desktop', 'phone'] as const;
const WANTED = 95;
/** Of a view's runs on a device the median counts: one is as noisy as the machine. */
const RUNS = 3;

/** What is used of Lighthouse: types of its own would need it to be installed. */
interface LighthouseRun {
  lhr: { categories: Record<string, { score: number | null }> };
}
type Lighthouse = (url: string, flags: object, config: unknown, page: unknown) => Promise<LighthouseRun>;

/** What is used of the browser's driver that Lighthouse works with. */
interface Page {
  evaluateOnNewDocument: (run: (value: string) => void, value: string) => Promise<unknown>;
}
interface Driver {
  launch: (options: object) => Promise<{ newPage: () => Promise<Page>; close: () => Promise<void> }>;
}

interface Tools {
  lighthouse: Lighthouse;
  desktop: unknown;
  driver: Driver;
}

/**
 * What Lighthouse gives each view of the console, of 100 points: as a desktop, and as a phone four times slower than this
 * machine. Lighthouse is fetched for it, 180 MB of it, and never in a short run.
 */
export const consoleLighthouse: Benchmark = {
  name: NAME,
  async run(bench) {
    if (!has_browser) return bench.report(skipped(NAME, 'chromium is not installed'));
    if (IS_SHORT) return bench.report(skipped(NAME, 'Lighthouse is fetched by a full run alone'));
    const tools = await fetched(bench.folder());
    if (tools === null) return bench.report(skipped(NAME, `npm cannot install ${LIGHTHOUSE}`));
    const sandbox = await managedSandbox(bench, { webhook: { url: DOWN_URL } });
    const browser = await tools.driver.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
    bench.onEnd(() => browser.close());
    const page = await browser.newPage();
    await page.evaluateOnNewDocument(
      (value) => sessionStorage.setItem('sandboxd-token', value),
      sandbox.token,
    );
    const of = `sandboxes/${sandbox.sandbox_id}`;
    const tabs = ['', '/events', '/processes', '/files', '/deliveries', '/terminal'].map(
      (tab) => `${of}${tab}`,
    );
    for (const device of DEVICES) {
      for (const place of ['', 'sandboxes', ...tabs, 'deliveries', 'events', 'quotas', 'usage']) {
        const runs: number[][] = [];
        for (let run = 0; run < RUNS; run++) {
          // Of the same document nothing would be loaded again: each run has an address of its own.
          const url = `${sandbox.manager_url}/console/?${device}-${runs.length}#/${place}`;
          const config = device === 'desktop' ? tools.desktop : undefined;
          const flags = { onlyCategories: CATEGORIES, disableStorageReset: true, logLevel: 'error' };
          const { lhr } = await tools.lighthouse(url, flags, config, page);
          runs.push(CATEGORIES.map((name) => Math.round((lhr.categories[name]?.score ?? 0) * 100)));
        }
        const name = place.replace(sandbox.sandbox_id, 'ID') || 'overview';
        report(bench, `${name}, ${device}`, runs);
      }
    }
  },
};

function report(bench: Bench, name: string, runs: number[][]): void {
  const points = CATEGORIES.map((_, i) => {
    const sorted = runs.map((run) => run[i] as number).sort((a, b) => a - b);
    return sorted[Math.floor(RUNS / 2)] as number;
  });
  bench.report({
    name: `Lighthouse: ${name} (${CATEGORIES.join(', ')})`,
    bare: '',
    ours: points.join(', '),
    ratio: '',
    wanted: `≥ ${WANTED}`,
    verdict: points.every((each) => each >= WANTED) ? 'ok' : 'missed',
  });
}

/** Lighthouse and its driver from a folder of their own; null where npm reaches no registry. */
async function fetched(folder: string): Promise<Tools | null> {
  try {
    execFileSync('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', LIGHTHOUSE], {
      stdio: 'ignore',
    });
  } catch {
    return null;
  }
  const load = (path: string) => import(pathToFileURL(join(folder, 'node_modules', path)).href);
  const { default: lighthouse, desktopConfig } = await load('lighthouse/core/index.js');
  const { default: driver } = await load('puppeteer-core/lib/puppeteer/puppeteer-core.js');
  return { lighthouse, desktop: desktopConfig, driver };
}
