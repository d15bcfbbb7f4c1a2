import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, it, onTestFinished } from 'vitest';
import { type Database, openDatabase } from '../../src/manager/database/database.ts';
import { SandboxStore } from '../../src/manager/sandboxes/sandbox-store.ts';
import { without_browser } from '../support/console/browser.ts';
import { has_browser } from '../support/console/chromium.ts';
import { startConsole } from '../support/console/console-scene.ts';
import { eventually } from '../support/eventually.ts';
import { rowOf } from '../support/manager/sandbox-rows.ts';
import { scratchFolder } from '../support/scratch.ts';

const COUNT = 10_000;
const PAGE = 100;
/** SQLite takes so many values in one statement. */
const ROWS_AT_ONCE = 500;
const BEGAN_MS = Date.UTC(2026, 0, 1);

/** The same for the same number, and of its order: later ones are newer. */
const numbered = (prefix: string, n: number) =>
  `${prefix}_01900000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const sandboxId = (n: number) => numbered('sbx', n);
const eventId = (n: number) => numbered('evt', n);

/** Sandboxes that are paused, which nobody looks after; each tenth is of another template, each thousandth of a branch. */
async function fillSandboxes(database: Database): Promise<void> {
  const store = new SandboxStore(database);
  await store.write(async (tx) => {
    for (let n = 0; n < COUNT; n++) {
      const row = rowOf(sandboxId(n), {
        status: 'paused',
        template_id: n % 10 === 0 ? 'python' : 'default',
        metadata: n % 1_000 === 0 ? JSON.stringify({ branch: 'main', n: String(n) }) : null,
        created_at_ms: BEGAN_MS + n * 1_000,
      });
      await store.insert(tx, row);
    }
  });
}

/** Records that are final: each hundredth has failed. */
async function fillDeliveries({ db }: Database): Promise<void> {
  const record = (n: number) => ({
    event_id: eventId(n),
    sandbox_id: sandboxId(n),
    team_id: 'team_1',
    event_type: n % 2 === 0 ? ('sandbox.deleted' as const) : ('agent.event' as const),
    ...{ sequence: null, endpoint: 'e', url: 'http://127.0.0.1:9/', headers: '{}', signatures: null },
    ...{
      secret_sealed: null,
      retry: 'transient' as const,
      body: '{}',
      state: n % 100 === 0 ? ('failed' as const) : ('delivered' as const),
    },
    ...{ due_ms: null, probe_ms: 0, deadline_ms: 0, attempts: 1, failures: 0 },
    created_at_ms: BEGAN_MS + n * 1_000,
    // Final records are removed in time.
    finished_at_ms: Date.now(),
  });
  for (let from = 0; from < COUNT; from += ROWS_AT_ONCE) {
    const rows = Array.from({ length: ROWS_AT_ONCE }, (_, index) => record(from + index));
    await db.insertInto('outbox').values(rows).execute();
  }
}

/** A manager with both, in the console's hands. */
async function startFilled() {
  const url = `sqlite:${join(scratchFolder(), 'm.db')}`;
  const scene = await startConsole('--database', url);
  const database = await openDatabase(url);
  onTestFinished(async () => {
    // They have nothing that a deletion could remove.
    await database.db.deleteFrom('sandbox_metadata').execute();
    await database.db.deleteFrom('sandboxes').execute();
    await database.close();
  });
  await fillSandboxes(database);
  await fillDeliveries(database);
  return scene;
}

const links = (page: Page) => page.locator('tbody .row-link');
const first = (page: Page) => links(page).first();

it.skipIf(!has_browser)(
  `10 000 sandboxes and 10 000 deliveries are paged, filtered and sorted, and each place has a link${without_browser}`,
  async () => {
    const scene = await startFilled();
    const { page, faults } = await scene.open('sandboxes');
    const shows = async (text: string) => page.locator('.pager').getByText(text, { exact: true }).waitFor();
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
    await shows('1–100 of 10,000');
    expect(await links(page).count()).toBe(PAGE);
    expect(await first(page).innerText()).toBe(sandboxId(COUNT - 1));
    await press('Older');
    await shows('101–200 of 10,000');
    expect(await first(page).innerText()).toBe(sandboxId(COUNT - 1 - PAGE));
    await press('Last');
    await shows('9,901–10,000 of 10,000');
    expect(await links(page).last().innerText()).toBe(sandboxId(0));
    expect(await page.getByRole('button', { name: 'Older', exact: true }).isDisabled()).toBe(true);
    // Back and forward lead through the pages, and a sandbox and back to where one was.
    await page.goBack();
    await shows('101–200 of 10,000');
    await page.goForward();
    await shows('9,901–10,000 of 10,000');
    await first(page).click();
    await page.getByRole('heading', { name: sandboxId(PAGE - 1) }).waitFor();
    await page.goBack();
    await shows('9,901–10,000 of 10,000');

    await press('Created');
    await page.getByText('Sorted within this page; the pages are newest first.').waitFor();
    await eventually(async () => expect(await first(page).innerText()).toBe(sandboxId(0)));
    await press('Template');
    await eventually(async () =>
      expect(await page.locator('tbody td:nth-child(3)').first().innerText()).toBe('default'),
    );
    await page.getByRole('button', { name: /^Template/ }).click();
    await eventually(async () =>
      expect(await page.locator('tbody td:nth-child(3)').first().innerText()).toBe('python'),
    );
    // The same place by its link alone.
    const { page: other } = await scene.open(page.url().split('#/')[1]);
    await other.getByText('9,901–10,000 of 10,000', { exact: true }).waitFor();
    expect(await other.locator('tbody td:nth-child(3)').allInnerTexts()).toEqual(
      await page.locator('tbody td:nth-child(3)').allInnerTexts(),
    );
    await other.context().close();

    await page.goto(`${scene.url}/console/#/sandboxes`);
    const filter = page.getByLabel('A metadata pair');
    await filter.fill('python');
    await page.keyboard.press('Enter');
    await shows('1–100 of 1,000');
    await filter.fill('branch:main');
    await page.keyboard.press('Enter');
    await shows('1–10 of 10');
    expect(await links(page).allInnerTexts()).toEqual(
      Array.from({ length: 10 }, (_, n) => sandboxId((9 - n) * 1_000)),
    );
    await filter.fill('n:7000');
    await page.keyboard.press('Enter');
    await shows('1–1 of 1');
    await page.getByLabel('Status').selectOption('running');
    await page.getByText('No sandbox is here').waitFor();
    await page.goBack();
    await shows('1–1 of 1');

    await page.goto(`${scene.url}/console/#/deliveries`);
    const shown = async (n: number) =>
      eventually(async () =>
        expect(await first(page).getAttribute('href')).toBe(`#/deliveries/${eventId(n)}`),
      );
    await shown(COUNT - 1);
    await press('Older');
    await shown(COUNT - 1 - PAGE);
    await press('Older');
    await shown(COUNT - 1 - 2 * PAGE);
    await page.goBack();
    await shown(COUNT - 1 - PAGE);
    await page.reload();
    await shown(COUNT - 1 - PAGE);
    await press('Newest');
    await shown(COUNT - 1);
    await page.getByLabel('State').selectOption('failed');
    await shown(COUNT - 100);
    expect(await links(page).count()).toBe(COUNT / 100);
    await page.getByLabel('Kind').selectOption('agent.event');
    await page.getByText('No delivery is here').waitFor();
    await page.getByLabel('Kind').selectOption('sandbox.deleted');
    await shown(COUNT - 100);
    expect(faults).toEqual([]);
  },
  240_000,
);
