import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { without_browser } from '../support/console/browser.ts';
import { has_browser } from '../support/console/chromium.ts';
import { type ConsoleScene, startConsole } from '../support/console/console-scene.ts';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { scratchFolder } from '../support/scratch.ts';

const RESOURCES = { memory: '128Mi', disk: '128Mi', cpu: 0.5 };
const SECRET = 'a secret made for this test';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** The text of a file in a sandbox, as the API gives it. */
async function textOf({ url, client }: ConsoleScene, id: string, path: string): Promise<string> {
  const headers = { authorization: `Bearer ${client.token}` };
  return (await fetch(`${url}/api/v1/sandboxes/${id}/files?path=${path}`, { headers })).text();
}

it.skipIf(!has_browser)(
  `processes are started, followed, searched and stopped, and a terminal keeps its session${without_browser}`,
  async () => {
    const scene = await startConsole();
    const id = await scene.client.claim({ resources: RESOURCES });
    const { page, faults } = await scene.open(`sandboxes/${id}/processes`);
    await page.getByText('No process has been started').waitFor();
    await page.keyboard.press('n');
    const dialog = page.getByRole('dialog');
    await dialog
      .getByLabel('Command')
      .fill('for i in $(seq 500); do echo "line $i"; done; echo needle; exec sleep 600');
    await dialog.getByLabel('Name').fill('worker');
    await dialog.getByLabel('Directory').fill('nowhere');
    await button(page, 'Start').last().click();
    await dialog.getByText('must be an absolute path').waitFor();
    await dialog.getByLabel('Directory').fill('/nowhere');
    await dialog.getByRole('button', { name: 'Start' }).click();
    await dialog.getByText('The request was refused').waitFor();
    await dialog.getByLabel('Directory').fill('/root');
    await dialog.getByRole('button', { name: 'Start' }).click();

    // The end is in view, however long it is; a search leads to the beginning and back.
    await page.getByText('needle', { exact: true }).waitFor();
    expect(await page.getByText('line 3', { exact: true }).count()).toBe(0);
    await page.keyboard.press('/');
    await page.keyboard.type('line 3');
    await page.getByText('111 lines').waitFor();
    await page.locator('.lines .is-current mark').waitFor();
    await page.getByLabel('Search in the output').fill('');
    await page.getByText('needle', { exact: true }).waitFor();
    await button(page, 'Stop').click();
    await dialog.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('SIGTERM', { exact: true }).filter({ visible: true }).first().waitFor();
    await page.getByText('ended', { exact: true }).waitFor();

    await page.getByRole('link', { name: 'Terminal' }).click();
    await button(page, 'New terminal').click();
    await page.getByText('live', { exact: true }).waitFor();
    const screen = page.locator('.xterm-rows').filter({ visible: true });
    const columns = async () => Number((await screen.innerText()).match(/cols=(\d+)=/)?.[1] ?? 0);
    await page.keyboard.type('kept=$((6 * 7)); echo "cols=$(tput cols)="\n');
    await eventually(async () => expect(await columns()).toBeGreaterThan(80));
    // The page is loaded again: the same shell, with what it had written.
    await page.reload();
    await page.getByText('live', { exact: true }).waitFor();
    await eventually(async () => expect(await columns()).toBeGreaterThan(80));
    await button(page, 'Type in it').click();
    // The connection is lost while somebody types.
    await page.context().setOffline(true);
    await page.keyboard.type('echo "it is $kept"\n');
    await page.context().setOffline(false);
    await screen.getByText('it is 42', { exact: true }).waitFor();
    await button(page, 'New terminal').click();
    await page.getByRole('button', { name: '2', pressed: true }).waitFor();
    await page.locator('.terminal:not([hidden])').getByText('live', { exact: true }).waitFor();
    await page.keyboard.type('echo second$((1 + 1))\n');
    await screen.getByText('second2', { exact: true }).waitFor();
    await page.keyboard.type('exit 3\n');
    await screen.getByText('[ended: exit 3]').waitFor();
    expect(faults).toEqual([]);
  },
  300_000,
);

it.skipIf(!has_browser)(
  `files are browsed, edited without loss, uploaded and saved${without_browser}`,
  async () => {
    const scene = await startConsole();
    const { client } = scene;
    const id = await client.claim({ resources: RESOURCES });
    const path = `/api/v1/sandboxes/${id}`;
    await client.post(`${path}/processes?wait_ms=20000`, {
      shell: 'mkdir /root/deep; printf "\\000\\001\\377" >/root/deep/bytes; printf first >/root/deep/note',
    });
    const { page, faults } = await scene.open(`sandboxes/${id}/files?path=%2Froot`);
    await page.getByRole('link', { name: 'deep' }).click();
    await page.getByRole('link', { name: 'bytes' }).click();
    await page.getByText('00000000  00 01 ff').waitFor();
    await page.getByRole('link', { name: 'note' }).click();
    await page.getByText('first', { exact: true }).waitFor();
    await button(page, 'Edit').click();
    const editor = page.getByLabel('Text of the file');
    await editor.fill('mine');
    // Somebody else writes it meanwhile.
    await client.post(`${path}/processes?wait_ms=20000`, { shell: 'printf theirs >/root/deep/note' });
    await button(page, 'Save').last().click();
    await page.getByText('The file has changed meanwhile').waitFor();
    expect(await editor.inputValue()).toBe('mine');
    expect(await textOf(scene, id, '/root/deep/note')).toBe('theirs');
    await button(page, 'Write mine over it').click();
    await page.getByText('mine', { exact: true }).waitFor();
    expect(await textOf(scene, id, '/root/deep/note')).toBe('mine');

    const content = `<script>globalThis.ran = true</script>${'x'.repeat(300_000)}`;
    const file = { name: 'up load.html', mimeType: 'text/html', buffer: Buffer.from(content) };
    await page.getByLabel('Files to upload').setInputFiles([file]);
    await page.getByText('done', { exact: true }).waitFor();
    expect(await textOf(scene, id, '/root/deep/up%20load.html')).toBe(content);
    // A folder is dragged here from the machine, with what is in it.
    const dragged = join(scratchFolder(), 'dragged');
    mkdirSync(join(dragged, 'inner'), { recursive: true });
    writeFileSync(join(dragged, 'inner', 'one'), 'from a folder');
    const panel = await page.getByRole('region', { name: 'Files', exact: true }).boundingBox();
    const { x, y } = panel as NonNullable<typeof panel>;
    const devtools = await page.context().newCDPSession(page);
    for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
      const data = { items: [], files: [dragged], dragOperationsMask: 1 };
      await devtools.send('Input.dispatchDragEvent', { type, x: x + 40, y: y + 40, data });
    }
    await page.getByRole('link', { name: 'dragged' }).waitFor();
    expect(await textOf(scene, id, '/root/deep/dragged/inner/one')).toBe('from a folder');
    // One that is under way is stopped.
    const large = join(scratchFolder(), 'large');
    writeFileSync(large, '');
    truncateSync(large, 64 * 1024 * 1024);
    await devtools.send('Network.emulateNetworkConditions', {
      ...{ offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 100_000 },
    });
    await page.getByLabel('Files to upload').setInputFiles(large);
    await page.getByRole('button', { name: 'Stop large' }).click();
    await page.getByText('stopped', { exact: true }).waitFor();
    await devtools.detach();

    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save up load.html' }).click();
    const saved = await saving;
    expect(saved.suggestedFilename()).toBe('up load.html');
    expect(readFileSync(await saved.path(), 'utf8')).toBe(content);
    const archiving = page.waitForEvent('download');
    await page.getByRole('link', { name: 'root', exact: true }).click();
    await page.getByRole('button', { name: 'Save deep' }).click();
    expect((await archiving).suggestedFilename()).toBe('deep.tar.gz');
    await page.getByRole('button', { name: 'Remove deep' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('link', { name: 'deep' }).waitFor({ state: 'detached' });
    expect(await page.evaluate('globalThis.ran')).toBeUndefined();
    expect(faults).toEqual([]);
  },
  300_000,
);

it.skipIf(!has_browser)(
  `a delivery shows its attempts, its signature is verified, and failed ones are replayed${without_browser}`,
  async () => {
    const scene = await startConsole();
    const consumer = await startConsumer();
    let is_well = false;
    consumer.answer = (_delivery, response) => {
      response.writeHead(is_well ? 204 : 404).end('<b>no such hook</b>');
    };
    const webhook = { url: consumer.url, secret: SECRET, events: ['agent.event'] };
    const id = await scene.client.claim({ webhook, resources: RESOURCES });
    const shell = `for i in 1 2 3; do sandboxctl publish '{"n":1.10}'; done`;
    await scene.client.post(`/api/v1/sandboxes/${id}/processes?wait_ms=30000`, { shell });
    const { page, faults } = await scene.open(`sandboxes/${id}/deliveries?state=failed`);
    const rows = page.locator('tbody .row-link');
    await eventually(async () => expect(await rows.count()).toBe(3));
    await rows.first().click();
    await page.getByText('404 Not Found').waitFor();
    await page.getByText('"n": 1.10').waitFor();
    await page.getByText('Answer', { exact: true }).click();
    await page.getByText('<b>no such hook</b>').waitFor();
    const secret = page.getByLabel('Signing secret');
    await secret.fill(`${SECRET}!`);
    await button(page, 'Verify').click();
    await page.getByText('not signed with this secret').waitFor();
    await secret.fill(SECRET);
    await page.keyboard.press('Enter');
    await page.getByText('signed with this secret', { exact: true }).waitFor();

    is_well = true;
    await button(page, 'Replay').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
    await page.getByText('#2', { exact: true }).waitFor();
    await page.goBack();
    await eventually(async () => expect(await rows.count()).toBe(2));
    await page.getByLabel('Replay all').selectOption('failed');
    await page.getByText('2 records are failed now.').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay 2' }).click();
    await page.getByText('No delivery is here').waitFor();
    await eventually(() => expect(consumer.deliveries).toHaveLength(6));
    expect(faults).toEqual([]);
  },
  300_000,
);
