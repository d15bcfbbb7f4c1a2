import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Debian's package. */
export const CHROMIUM = '/usr/bin/chromium';

/** Whether there is a browser here. */
export const has_browser = existsSync(CHROMIUM);

/** Starts a browser without a window. */
export function launchBrowser(...args: string[]): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-dev-shm-usage', ...args],
  });
}
