import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import { has_browser, launchBrowser } from './chromium.ts';

/** Long enough for a busy machine; a test that fails says what it waited for. */
const WAIT_MS = 60_000;

/** What a test's name says where there is no browser. */
export const without_browser = has_browser ? '' : ' (skipped: chromium is not installed)';

/** Where screenshots go: in the folder of the build, which no package holds but `dist/console`. */
const SHOTS = fileURLToPath(new URL('../../../dist/screenshots', import.meta.url));

/** A page of a browser, with everything that went wrong in it. */
export interface Tab {
  page: Page;
  /** Uncaught errors, and what the content security policy has stopped. */
  faults: string[];
}

/** Starts a browser; it ends with the present test. */
export async function startBrowser(): Promise<Browser> {
  const browser = await launchBrowser();
  onTestFinished(() => browser.close());
  return browser;
}

/** Opens a page with an address; `token` is as one that is kept for the tab. */
export async function openTab(
  browser: Browser,
  url: string,
  token: string | null,
  options: BrowserContextOptions = {},
): Promise<Tab> {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, ...options });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    if (/Content Security Policy|TrustedHTML|Trusted Type/i.test(message.text())) faults.push(message.text());
  });
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  if (token !== null) {
    await page.addInitScript((value) => sessionStorage.setItem('sandboxd-token', value), token);
  }
  await page.goto(url);
  return { page, faults };
}

/** Saves what is seen, for people. */
export async function shoot(page: Page, name: string): Promise<void> {
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`) });
}
