import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request as httpRequest, type OutgoingHttpHeaders } from 'node:http';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BuiltDaemon } from '../../support/built.ts';
import { openTab, startBrowser, without_browser } from '../../support/console/browser.ts';
import { has_browser } from '../../support/console/chromium.ts';
import { start } from '../../support/ctl/sandboxctl.ts';
import { eventually } from '../../support/eventually.ts';
import { SANDBOXD } from '../../support/sandboxd-program.ts';

/** The built `sandboxctl console` of a daemon, and the URL that it prints. */
async function served() {
  const daemon = await BuiltDaemon.start();
  const ctl = join(dirname(SANDBOXD), 'sandboxctl.cjs');
  const child = spawn(
    ctl,
    ['--url', daemon.url, '--state-dir', daemon.state_dir, 'console', '--no-open', '--json'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const ended = once(child, 'close');
  onTestFinished(async () => {
    child.kill('SIGINT');
    await ended;
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const url = await eventually(() => JSON.parse(printed).url as string, { interval: 20 });
  return { daemon, child, url: new URL(url) };
}

function status(url: URL, path: string, headers: OutgoingHttpHeaders = {}, method = 'GET'): Promise<number> {
  return new Promise((resolve, reject) => {
    httpRequest({ host: url.hostname, port: url.port, path, method, headers })
      .once('response', (response) => resolve(response.resume().statusCode ?? 0))
      .once('error', reject)
      .end();
  });
}

describe('sandboxctl console', () => {
  it('tells where it is on lines of its own', async () => {
    const daemon = await BuiltDaemon.start();
    const running = start(['--url', daemon.url, '--state-dir', daemon.state_dir, 'console', '--no-open']);
    await running.wrote(/\n\n {2}http:\S+\n\n$/);
    expect((await running.ended('SIGINT')).stdout).toMatch(/^The console of \S+ is at\n\n {2}http:\S+\n\n$/);
  });

  it('serves who knows its path from its own page, and nobody else', async () => {
    const { daemon, url } = await served();
    const root = url.pathname.replace('console/', '');
    const api = `${root}api/v1/sandbox`;
    expect(root.length).toBeGreaterThan(30);
    expect(await status(url, url.pathname)).toBe(200);
    expect(await status(url, api)).toBe(200);
    expect(await status(url, `${root}healthz`)).toBe(200);
    const host = url.host;
    for (const [path, headers] of [
      ['/console/', {}],
      ['/api/v1/sandbox', {}],
      [api.replace(/^\/../, '/xx'), {}],
      [`${root}api/v1/../../metrics`, {}],
      [`${root}api/v1/%2e%2e/metrics`, {}],
      [`${root}console/../api/v1/sandbox`, {}],
      [api, { host: 'evil.example' }],
      [api, { host: `${host}.evil.example` }],
      [api, { origin: 'http://evil.example' }],
      [api, { origin: 'null' }],
      [api, { 'sec-fetch-site': 'cross-site' }],
      [api, { 'sec-fetch-site': ['same-origin', 'Cross-Site'] }],
      [api, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }],
    ] as [string, OutgoingHttpHeaders][]) {
      expect(await status(url, path, headers), `${path} ${JSON.stringify(headers)}`).toBe(404);
    }
    // A link in a chat opens the page.
    expect(
      await status(url, url.pathname, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }),
    ).toBe(200);
    expect(await status(url, api, { origin: `http://${host}` })).toBe(200);
    const token = readFileSync(join(daemon.state_dir, 'control-token'), 'utf8').trim();
    expect((await (await fetch(url)).text()).includes(token)).toBe(false);
  });

  it.skipIf(!has_browser)(
    `shows the sandbox, its processes and a terminal in a browser${without_browser}`,
    async () => {
      const { daemon, url } = await served();
      await daemon.ask('POST', '/processes', { shell: 'echo written; sleep 600', name: 'sleeper' });
      const { page, faults } = await openTab(await startBrowser(), url.href, null);
      await page.getByText('no webhook is configured').waitFor();
      await page.keyboard.press('g');
      await page.keyboard.press('p');
      await page.getByRole('link', { name: 'sleeper' }).click();
      await page.getByText('written', { exact: true }).waitFor();
      await page.getByRole('link', { name: 'Terminal' }).click();
      await page.getByRole('button', { name: 'New terminal' }).click();
      await page.getByText('live', { exact: true }).waitFor();
      await page.keyboard.type('echo $((6 * 7))\n');
      await page.locator('.xterm-rows').getByText('42', { exact: true }).waitFor();
      expect(faults).toEqual([]);
    },
    120_000,
  );
});
