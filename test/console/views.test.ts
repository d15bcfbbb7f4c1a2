import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { violationsOf } from '../support/console/accessibility.ts';
import { shoot, without_browser } from '../support/console/browser.ts';
import { has_browser } from '../support/console/chromium.ts';
import { startConsole } from '../support/console/console-scene.ts';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';

const DIST = fileURLToPath(new URL('../../dist/console', import.meta.url));
const FIRST_LOAD_MAX_BYTES = 150 * 1024;

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
/** The first two are looked at with every run, all of them where `CONSOLE_MODES` is `all`. */
const MODES = [
  { name: 'light-desktop', options: { colorScheme: 'light' as const } },
  { name: 'dark-phone', options: { colorScheme: 'dark' as const, ...PHONE } },
  { name: 'dark-desktop', options: { colorScheme: 'dark' as const } },
  { name: 'light-phone', options: { colorScheme: 'light' as const, ...PHONE } },
].slice(0, process.env.CONSOLE_MODES === 'all' ? 4 : 2);

it('the first load is small: without the terminal and the charts', () => {
  const html = readFileSync(join(DIST, 'index.html'), 'utf8');
  const names = [...html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, name]) => name as string);
  const loaded = names.map((name) => statSync(join(DIST, `${name}.gz`)).size);
  const terminal = readdirSync(join(DIST, 'assets')).filter((name) => /^screen-.*\.js$/.test(name));
  expect(terminal).toHaveLength(1);
  expect(names).not.toContain(`assets/${terminal[0]}`);
  expect(loaded.reduce((sum, each) => sum + each, 0)).toBeLessThan(FIRST_LOAD_MAX_BYTES);
});

/** A sandbox with something in each of its tabs. */
async function furnished({ client }: Awaited<ReturnType<typeof startConsole>>) {
  const consumer = await startConsumer();
  consumer.answer = ({ event }, response) => {
    response.writeHead(event.event_type === 'agent.event' ? 404 : 204).end();
  };
  const webhook = { url: consumer.url, secret: 'made for this test', watch_dir: '/root' };
  const resources = { memory: '128Mi', disk: '128Mi', cpu: 0.5 };
  const id = await client.claim({
    webhook,
    resources,
    metadata: { branch: 'main', owner: 'ada' },
    ttl: 7200,
  });
  const path = `/api/v1/sandboxes/${id}`;
  const shell =
    'mkdir -p /root/src; echo "# A project" >/root/README.md; echo compiled; echo careful >&2; exit 3';
  const { data } = await client.post(`${path}/processes?wait_ms=20000`, { shell, name: 'build' });
  await client.post(`${path}/processes?wait_ms=20000`, { shell: `sandboxctl publish '{"step":"built"}'` });
  await consumer.arrival('agent.event');
  const gone = await client.claim({ webhook, resources });
  await client.call('DELETE', `/api/v1/sandboxes/${gone}`);
  await consumer.arrival('sandbox.deleted');
  const { deliveries } = (await client.get(`${path}/webhook/deliveries?event_type=agent.event`)).data;
  return { id, process_id: data.process_id as string, event_id: deliveries[0].event_id as string };
}

const press = (name: string) => (page: Page) =>
  page.getByRole('button', { name, exact: true }).first().click();

interface View {
  name: string;
  place: string;
  /** What is seen once it is drawn. */
  shows: string | RegExp;
  act?: (page: Page) => Promise<unknown>;
}

it.skipIf(!has_browser)(
  `every view is drawn, light on a desktop and dark on a phone, as WCAG 2.2 AA asks${without_browser}`,
  async () => {
    const scene = await startConsole();
    const { id, process_id, event_id } = await furnished(scene);
    const of = `sandboxes/${id}`;
    const views: View[] = [
      { name: 'overview', place: '', shows: 'Memory leased, by the hour' },
      { name: 'sandboxes', place: 'sandboxes', shows: id },
      {
        name: 'claim',
        place: 'sandboxes',
        shows: 'Claim a sandbox',
        act: (page) => page.keyboard.press('n'),
      },
      { name: 'sandbox', place: of, shows: 'branch:main' },
      { name: 'change', place: of, shows: 'Replace the environment', act: press('Change') },
      { name: 'delete', place: of, shows: 'Delete this sandbox?', act: press('Delete') },
      { name: 'sandbox-events', place: `${of}/events`, shows: 'agent.event' },
      { name: 'processes', place: `${of}/processes`, shows: 'exit 3' },
      {
        name: 'start',
        place: `${of}/processes`,
        shows: 'Start a process',
        act: (page) => page.keyboard.press('n'),
      },
      { name: 'process', place: `${of}/processes/${process_id}`, shows: 'careful' },
      { name: 'files', place: `${of}/files?path=%2Froot&open=%2Froot%2FREADME.md`, shows: '# A project' },
      { name: 'sandbox-deliveries', place: `${of}/deliveries`, shows: 'sandbox.ready' },
      {
        name: 'replay',
        place: `${of}/deliveries?kind=agent.event`,
        shows: '1 record is failed now.',
        act: (page) => page.getByLabel('Replay all').selectOption('failed'),
      },
      { name: 'delivery', place: `${of}/deliveries/${event_id}`, shows: 'Verify the signature' },
      {
        name: 'terminal',
        place: `${of}/terminal`,
        shows: /^live$/,
        act: (page) => page.getByRole('button', { name: 'New terminal' }).click(),
      },
      { name: 'deliveries', place: 'deliveries', shows: 'sandbox.deleted' },
      { name: 'events', place: 'events', shows: 'sandbox.deleted' },
      { name: 'quotas', place: 'quotas', shows: 'active_sandboxes' },
      { name: 'usage', place: 'usage', shows: /Memory leased by the hour|No closed window yet/ },
      { name: 'keys', place: 'quotas', shows: 'leave the terminal', act: (page) => page.keyboard.press('?') },
    ];
    const wrong: string[] = [];
    for (const { name, options } of MODES) {
      const { page, faults } = await scene.open('', options);
      for (const view of views) {
        await page.goto(`${scene.url}/console/#/${view.place}`);
        const dialog = page.getByRole('dialog');
        if (await dialog.isVisible()) await page.keyboard.press('Escape');
        await eventually(async () => expect(await page.getByText('Loading…').count()).toBe(0));
        await view.act?.(page);
        await page.getByText(view.shows).filter({ visible: true }).first().waitFor();
        const wide = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
        if (wide > 0) wrong.push(`${view.name}, ${name}: ${wide} px too wide`);
        wrong.push(...(await violationsOf(page)).map((each) => `${view.name}, ${name}: ${each}`));
        await shoot(page, `${view.name}-${name}`);
      }
      wrong.push(...faults.map((each) => `${name}: ${each}`));
      await page.context().close();
    }
    expect(wrong).toEqual([]);
  },
  400_000,
);
