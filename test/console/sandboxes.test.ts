import { expect, it, onTestFinished } from 'vitest';
import { has_browser, without_browser } from '../support/console/browser.ts';
import { startConsole } from '../support/console/console-scene.ts';
import { postgresPrograms, startPostgres } from '../support/postgres.ts';

const ID = /^sbx_[0-9a-f-]{36}$/;

/** From signing in to the deletion, by keyboard and pointer. */
async function life(...options: string[]): Promise<void> {
  const { client, openUnknown, token } = await startConsole(...options);
  const { page, faults } = await openUnknown();
  await page.getByLabel('Token of your team').fill(await token('sandboxes:write'));
  await page.keyboard.press('Enter');

  // The keys lead to the list, and to the claim.
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('s');
  await page.getByText('No sandbox is here').waitFor();
  await page.keyboard.press('n');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Memory').fill('lots');
  await dialog.getByLabel('Pause after').fill('soon');
  await dialog.getByRole('button', { name: 'Claim' }).click();
  await dialog.getByText('must be like 256Mi or 1Gi').waitFor();
  await dialog.getByText('must be like 90s, 30m, 2h or 7d; 0 is off').waitFor();
  await dialog.getByLabel('Memory').fill('128Mi');
  await dialog.getByLabel('Cores').fill('0.5');
  await dialog.getByLabel('Disk').fill('128Mi');
  await dialog.getByLabel('Pause after').fill('2h');
  await dialog.getByLabel('Metadata').fill('branch:main\nowner:<b>me</b>');
  await dialog.getByLabel('Environment').fill('GREETING=hello there');
  await dialog.getByLabel('Webhook URL').fill('http://10.0.0.1/');
  await dialog.getByRole('button', { name: 'Claim' }).click();
  // What only the manager knows is said by it, and what was typed stays.
  await dialog.getByText('The request was refused').waitFor();
  expect(await dialog.getByLabel('Memory').inputValue()).toBe('128Mi');
  await dialog.getByLabel('Webhook URL').fill('');
  await dialog.getByRole('button', { name: 'Claim' }).click();

  const heading = page.getByRole('heading', { level: 1 });
  await heading.filter({ hasText: 'sbx_' }).waitFor();
  const id = (await heading.textContent()) as string;
  expect(id).toMatch(ID);
  const record = async (of: string) => (await client.get(`/api/v1/sandboxes/${of}`)).data;
  expect(await record(id)).toMatchObject({
    status: 'running',
    resources: { memory: '128Mi', cpu: 0.5, disk: '128Mi' },
    metadata: { branch: 'main', owner: '<b>me</b>' },
    env_names: ['GREETING'],
  });
  await page.getByText('owner:<b>me</b>').waitFor();

  const press = async (name: string, verb = name) => {
    await page.getByRole('button', { name, exact: true }).click();
    await dialog.getByRole('button', { name: verb, exact: true }).click();
  };
  await press('Pause');
  await page.getByText('paused', { exact: true }).waitFor();
  expect((await record(id)).status).toBe('paused');
  await press('Resume');
  await page.getByText('running', { exact: true }).waitFor();
  await press('Fork');
  await heading.filter({ hasNotText: id }).waitFor();
  const copy = (await heading.textContent()) as string;
  expect((await record(copy)).status).toBe('paused');

  // Back leads to the parent, and its link holds.
  await page.goBack();
  await heading.filter({ hasText: id }).waitFor();
  await page.goto(`${page.url().split('#')[0]}#/sandboxes?metadata=branch%3Amain`);
  await page.getByRole('link', { name: copy }).waitFor();
  await page.getByRole('link', { name: id }).focus();
  await page.keyboard.press('k');
  await page.keyboard.press('Enter');
  await heading.filter({ hasText: copy }).waitFor();

  await page.getByRole('button', { name: 'Delete' }).click();
  expect(await dialog.getByRole('button', { name: 'Delete' }).isDisabled()).toBe(true);
  await dialog.getByLabel('Delete it with everything in it').check();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await page.getByText('This sandbox has been deleted.').waitFor();
  expect((await record(copy)).status).toMatch(/deleted|terminating/);
  expect(faults).toEqual([]);
}

it.skipIf(!has_browser)(
  `a sandbox is claimed, paused, resumed, forked and deleted${without_browser}`,
  () => life(),
  300_000,
);

const can_postgres = has_browser && postgresPrograms() !== null;
it.skipIf(!can_postgres)(
  `the same on PostgreSQL${can_postgres ? '' : ' (skipped: chromium or postgresql is not installed)'}`,
  async () => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.stop());
    await life('--database', await postgres.database());
  },
  300_000,
);
