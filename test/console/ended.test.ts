import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { without_browser } from '../support/console/browser.ts';
import { has_browser } from '../support/console/chromium.ts';
import { startConsole } from '../support/console/console-scene.ts';

const RESOURCES = { memory: '128Mi', disk: '128Mi', cpu: 0.5 };
/** By hand: `CONSOLE_OUTPUT_MIB=100 vitest run … test/console/ended.test.ts`. */
const OUTPUT_MIB = Number(process.env.CONSOLE_OUTPUT_MIB ?? 4);

it.skipIf(!has_browser)(
  `a terminal and a stream outlive a revoked token, and end for good with their sandbox${without_browser}`,
  async () => {
    const scene = await startConsole();
    const { client } = scene;
    const id = await client.claim({ resources: RESOURCES });
    const path = `/api/v1/sandboxes/${id}`;
    const shell = `yes 0123456789 | head -c ${OUTPUT_MIB}M; echo; echo the last line; exec sleep 600`;
    const { data } = await client.post(`${path}/processes`, { shell, name: 'writer' });
    const short = await scene.token('sandboxes:write', 'webhooks:read');

    const views = await Promise.all(
      [`processes/${data.process_id}`, 'events', 'terminal'].map(async (tab) => {
        const tabs = await scene.openUnknown();
        await tabs.page.getByLabel('Token of your team').fill(short);
        await tabs.page.keyboard.press('Enter');
        await tabs.page.goto(`${scene.url}/console/#/sandboxes/${id}/${tab}`);
        return tabs;
      }),
    );
    const [output, events, terminal] = views.map(({ page }) => page) as [Page, Page, Page];
    // However much it is, the end is in view, and found.
    await output.getByText('the last line', { exact: true }).waitFor();
    await output.getByLabel('Search in the output').fill('the last');
    await output.locator('.lines .is-current mark').waitFor();
    await output.getByText('live', { exact: true }).waitFor();
    await events.getByText('live', { exact: true }).waitFor();
    await terminal.getByRole('button', { name: 'New terminal' }).click();
    await terminal.getByText('live', { exact: true }).waitFor();
    await terminal.keyboard.type('kept=$((6 * 7))\n');

    // Every connection is lost, and the token is revoked meanwhile.
    await scene.stop();
    await scene.revokeNewest();
    await terminal.getByText('The manager cannot be reached.').waitFor();
    await terminal.keyboard.type('echo "it is $kept"\n');
    await scene.restart();
    for (const { page } of views) {
      await page.getByText('What you have typed is still here.').waitFor();
      await page.getByLabel('Token of your team').fill(client.token);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('live', { exact: true }).waitFor();
    }
    await terminal.locator('.xterm-rows').getByText('it is 42', { exact: true }).waitFor();

    await client.call('DELETE', path);
    for (const { page } of views) {
      await page.getByText('This sandbox has been deleted.').waitFor();
      await page.getByText('ended', { exact: true }).waitFor();
    }
    // Only the record is asked for from now on.
    const asked: string[] = [];
    for (const { page } of views)
      page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await Promise.all(views.map(({ page }) => askedTwice(page, path)));
    expect(asked.filter((each) => /stream|output|attach/.test(each))).toEqual([]);
    expect(views.flatMap(({ faults }) => faults)).toEqual([]);
  },
  300_000,
);

/** Waits until the page has asked for a sandbox's record twice more. */
async function askedTwice(page: Page, path: string): Promise<void> {
  for (let times = 0; times < 2; times++) {
    await page.waitForResponse((response) => new URL(response.url()).pathname === path);
  }
}
