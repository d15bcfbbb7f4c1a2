import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { without_browser } from '../support/console/browser.ts';
import { has_browser } from '../support/console/chromium.ts';
import { startConsole } from '../support/console/console-scene.ts';
import { hostileStrings } from '../support/console/hostile-strings.ts';
import { eventually } from '../support/eventually.ts';

/** More by hand: `CONSOLE_STRINGS=1000 vitest run … test/console/hostile.test.ts`. */
const STRINGS = Number(process.env.CONSOLE_STRINGS ?? 100);
const SEED = 20_261;

/** A receiver whose every answer is one of these texts. */
async function startReceiver(texts: readonly string[]): Promise<string> {
  let next = 0;
  const server = createServer((request, response) => {
    request.resume().once('end', () => response.writeHead(404).end(texts[next++ % texts.length]));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

it.skipIf(!has_browser)(
  `no text of a sandbox or receiver acts in any view: no script, no link, no title, no request elsewhere${without_browser}`,
  async () => {
    const texts = hostileStrings(SEED, STRINGS);
    const scene = await startConsole();
    const { client } = scene;
    const url = await startReceiver(texts);
    const shown = texts.slice(0, 30).filter((text) => !text.includes('\u0000'));
    const id = await client.claim({
      webhook: { url, watch_dir: '/root/watched' },
      resources: { memory: '256Mi', disk: '128Mi', cpu: 1 },
      metadata: Object.fromEntries(shown.map((text, index) => [`key${index}`, text])),
    });
    const path = `/api/v1/sandboxes/${id}`;
    const base64 = Buffer.from(texts.join('\0')).toString('base64');
    // Every text is a line of output, an event, the name and the content of a file.
    const program = `
      import base64, os, subprocess
      texts = base64.b64decode("${base64}").decode().split("\\0")
      os.makedirs("/root/watched", exist_ok=True)
      for index, text in enumerate(texts):
          print(text, flush=True)
          name = text.replace("/", "_")[:60] + str(index)
          open("/root/watched/" + name, "w").write(text)
      os.write(2, b"done with it\\n")
    `.replaceAll(/^ {6}/gm, '');
    await client.post(`${path}/processes?wait_ms=60000`, {
      command: ['python3', '-c', program],
      name: texts[0],
    });
    for (const text of shown) await client.post(`${path}/processes`, { command: ['true', text], name: text });

    const { page, faults } = await scene.open('sandboxes');
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    page.context().on('page', () => faults.push('a window was opened'));
    const calm = async (where: string) => {
      const state = await page.evaluate(
        `JSON.stringify([
          globalThis.hacked, document.title.includes('hacked'),
          document.querySelectorAll('main script, main iframe, main img, main link, main style, main meta').length,
          [...document.querySelectorAll('a')].filter((a) => !/^#\\//.test(a.getAttribute('href') ?? '#/')).length,
        ])`,
      );
      expect(state, where).toBe('[null,false,0,0]');
    };
    const visit = async (place: string, text: string) => {
      await page.goto(`${scene.url}/console/#/${place}`);
      await page.getByText(text).filter({ visible: true }).first().waitFor();
      await calm(place);
    };
    await visit('sandboxes', texts[0] as string);
    await visit(`sandboxes/${id}`, texts[1] as string);
    await visit(`sandboxes/${id}/processes`, texts[0] as string);
    await page
      .getByRole('link', { name: texts[0] as string, exact: true })
      .last()
      .click();
    await page.locator('.lines').getByText('done with it', { exact: true }).waitFor();
    await page.getByLabel('Search in the output').fill('<');
    await calm('output');
    await visit(`sandboxes/${id}/events`, 'live');
    // Others come meanwhile, and move what is to be clicked.
    await page.getByLabel('Kind').selectOption('file.modified');
    const lines = page.getByRole('button', { name: /file\.modified/ });
    await lines.first().waitFor();
    await page.getByRole('button', { name: 'Hold' }).click();
    await lines.last().click();
    await page.getByRole('dialog').waitFor();
    await calm('event');
    await page.keyboard.press('Escape');
    await visit(`sandboxes/${id}/files?path=%2Froot%2Fwatched`, texts[1] as string);
    await page.locator('.row-link').nth(2).click();
    await page.getByLabel('Content').waitFor();
    await calm('file');
    // What is not attempted yet has no answer.
    await visit(`sandboxes/${id}/deliveries?state=failed`, '404');
    await page.locator('.row-link').last().click();
    await page.getByText('Answer', { exact: true }).click();
    await calm('delivery');

    // The same text on a terminal: sequences that set titles, make links and reach the clipboard.
    await page.goto(`${scene.url}/console/#/sandboxes/${id}/terminal`);
    const command =
      'cd /root/watched; for f in *; do cat "$f"; done; printf "\\033[0m"; echo done$((6 * 7)); sleep 600';
    await page.getByLabel('Command').fill(command);
    await page.getByRole('button', { name: 'New terminal' }).click();
    await page.locator('.xterm-rows').getByText('done42').waitFor();
    await calm('terminal');
    await eventually(async () => expect(await page.getByRole('dialog').count()).toBe(0));
    expect(asked.filter((each) => !each.startsWith(scene.url))).toEqual([]);
    expect(faults).toEqual([]);
  },
  300_000,
);
