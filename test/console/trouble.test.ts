import { expect, it } from 'vitest';
import { without_browser } from '../support/console/browser.ts';
import { has_browser } from '../support/console/chromium.ts';
import { startConsole } from '../support/console/console-scene.ts';

const RESOURCES = { memory: '128Mi', disk: '128Mi', cpu: 0.5 };

it.skipIf(!has_browser)(
  `nothing that was typed is lost when the manager goes, a token is revoked or a sandbox is deleted${without_browser}`,
  async () => {
    const scene = await startConsole();
    const { client } = scene;
    const id = await client.claim({ resources: RESOURCES });
    const short = await scene.token('sandboxes:write', 'webhooks:read');
    const { page, faults } = await scene.openUnknown();
    await page.getByLabel('Token of your team').fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('The manager does not know this token').waitFor();
    await page.getByLabel('Token of your team').fill(short);
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    // It is in the page's memory and nowhere else.
    expect(
      await page.evaluate('JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])'),
    ).toBe('[{},{},""]');

    // A scope that is missing is said, and hides nothing.
    await page.getByRole('link', { name: 'Quotas' }).click();
    await page.getByText('quota:read').first().waitFor();
    await page.getByRole('link', { name: 'Usage' }).click();
    await page.getByText('usage:read').first().waitFor();

    await page.goto(`${scene.url}/console/#/sandboxes/${id}/files?path=%2Froot`);
    await page.getByRole('button', { name: 'New file' }).click();
    const name = page.getByRole('dialog').getByLabel('Name');
    await name.fill('typed.txt');
    await scene.stop();
    await page.getByText('The manager cannot be reached.').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Make' }).click();
    await page.getByText('Nobody answers').first().waitFor();
    expect(await name.inputValue()).toBe('typed.txt');
    await scene.restart();
    await page.getByText('The manager cannot be reached.').waitFor({ state: 'detached' });
    await page.getByRole('dialog').getByRole('button', { name: 'Make' }).click();
    await page.getByRole('button', { name: 'Edit' }).click();
    const editor = page.getByLabel('Text of the file');
    await editor.fill('a long text');

    await scene.revokeNewest();
    await page.getByText('What you have typed is still here.').waitFor();
    await page.getByLabel('Token of your team').fill(client.token);
    await page.getByLabel('Keep it until this tab is closed').check();
    await page.getByRole('button', { name: 'Sign in' }).click();
    expect(await editor.inputValue()).toBe('a long text');
    await page.getByRole('button', { name: 'Save', exact: true }).last().click();
    await page.getByText('a long text', { exact: true }).waitFor();
    // Kept for the tab, as was asked for.
    await page.reload();
    await page.getByText('a long text', { exact: true }).waitFor();

    await client.call('DELETE', `/api/v1/sandboxes/${id}`);
    await page.getByText('This sandbox has been deleted.').waitFor();
    expect(faults).toEqual([]);
  },
  300_000,
);
