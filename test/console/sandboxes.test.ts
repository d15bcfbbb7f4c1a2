import { readFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { without_browser } from '../support/console/browser.ts';
import { has_browser } from '../support/console/chromium.ts';
import { startConsole } from '../support/console/console-scene.ts';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { postgresPrograms, startPostgres } from '../support/postgres.ts';

const ID = /^sbx_[0-9a-f-]{36}$/;

/** From signing in to the deletion, by keyboard and pointer. */
async function life(...options: string[]): Promise<void> {
  const { client, openUnknown, token } = await startConsole(...options);
  const consumer = await startConsumer();
  let is_well = false;
  consumer.answer = (_delivery, response) => void response.writeHead(is_well ? 204 : 404).end();
  const { page, faults } = await openUnknown();
  const rights = await token('sandboxes:write', 'webhooks:read', 'quota:read', 'usage:read');
  await page.getByLabel('Token of your team').fill(rights);
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
  await dialog.getByLabel('Webhook URL').fill(consumer.url);
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

  await page.getByRole('button', { name: 'Change', exact: true }).click();
  await dialog.getByLabel('Memory').fill('lots');
  await dialog.getByLabel('Pause when unused for').fill('20m');
  await dialog.getByLabel('Replace the environment').check();
  await dialog.getByLabel('Environment', { exact: true }).fill('OTHER=1\nNAME=2');
  await dialog.getByRole('button', { name: 'Change', exact: true }).click();
  await dialog.getByText('must be like 256Mi or 1Gi').waitFor();
  await dialog.getByLabel('Memory').fill('160Mi');
  await dialog.getByRole('button', { name: 'Change', exact: true }).click();
  await page.getByText('NAME, OTHER').waitFor();
  expect(await record(id)).toMatchObject({
    resources: { memory: '160Mi' },
    idle_ttl: 1_200,
    env_names: ['NAME', 'OTHER'],
  });

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

  // What the receiver refused is in the manager's outbox: narrowed, counted, and replayed as far as it is shown.
  const show = (place: string) => page.goto(`${page.url().split('#')[0]}#/${place}`);
  await show('deliveries?state=failed');
  const rows = page.locator('tbody .row-link');
  await page.getByRole('link', { name: /sandbox\.deleted/ }).waitFor();
  await page.getByLabel('Endpoint').fill(`${consumer.url}/elsewhere`);
  await page.keyboard.press('Enter');
  await page.getByText('No delivery is here').waitFor();
  await page.getByLabel('Endpoint').fill(consumer.url);
  await page.keyboard.press('Enter');
  await page.getByLabel('Kind').selectOption('sandbox.deleted');
  await eventually(async () => expect(await rows.count()).toBe(1));
  is_well = true;
  await page.getByLabel('Replay all').selectOption('failed');
  await dialog.getByText('1 record is failed now.').waitFor();
  await dialog.getByText('event_type sandbox.deleted').waitFor();
  await dialog.getByRole('button', { name: 'Replay 1' }).click();
  await page.getByLabel('State').selectOption('delivered');
  await eventually(async () => expect(await rows.count()).toBe(1));
  await rows.first().click();
  await page.getByText('#2', { exact: true }).waitFor();

  await show('events');
  await page.getByRole('button', { name: /sandbox\.deleted/ }).waitFor();
  await show('quotas');
  await page.getByText('active_sandboxes').waitFor();
  await show('usage');
  await page.getByText('Memory leased by the hour').waitFor();
  const saving = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  const [head, ...lines] = readFileSync(await (await saving).path(), 'utf8')
    .trim()
    .split('\r\n');
  expect(head).toContain('window_id,region_id');
  expect(lines.join()).toContain(id);
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
