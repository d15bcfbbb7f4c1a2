import { expect, it } from 'vitest';
import { without_browser } from '../support/console/browser.ts';
import { has_browser } from '../support/console/chromium.ts';
import { startConsole } from '../support/console/console-scene.ts';

it.skipIf(!has_browser)(
  `an answer that makes no sense spoils its view alone, and until the next one${without_browser}`,
  async () => {
    const scene = await startConsole();
    const id = await scene.client.claim({ resources: { memory: '128Mi', disk: '128Mi', cpu: 0.5 } });
    const { page } = await scene.open('quotas');
    await page.getByText('active_sandboxes').first().waitFor();
    let answer: string | null = '{"sandboxes":[{"id":null}],"count":1,"has_more":false}';
    await page.route('**/api/v1/sandboxes?*', (route) =>
      answer === null
        ? route.continue()
        : route.fulfill({ contentType: 'application/json', body: `{"success":true,"data":${answer}}` }),
    );
    await page.getByRole('link', { name: 'Sandboxes' }).first().click();
    await page.getByText('An answer makes no sense').first().waitFor();
    // Another view is well, and this one is with the next good answer.
    await page.getByRole('link', { name: 'Quotas' }).click();
    await page.getByText('active_sandboxes').first().waitFor();
    await page.getByRole('link', { name: 'Sandboxes' }).first().click();
    await page.getByText('An answer makes no sense').first().waitFor();
    answer = null;
    await page.getByText('An answer makes no sense').first().waitFor({ state: 'detached' });
    await page.locator(`a[href*="${id}"]`).first().waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  },
  120_000,
);
