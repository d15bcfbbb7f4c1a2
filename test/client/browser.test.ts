import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { sign } from '../../src/webhook/signature.ts';
import { startBrowser, without_browser } from '../support/console/browser.ts';
import { has_browser } from '../support/console/chromium.ts';
import { DaemonRuntime } from '../support/manager/daemon-runtime.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { scratchFolder } from '../support/scratch.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BODY = readFileSync(join(ROOT, 'fixtures/events/process.exited.body'), 'utf8');

/** What the page does; it is given the facts. */
const PROGRAM = `async ({ url, token, sandbox_id, body, signature }) => {
  const { createManagerClient } = await import('/page/client.mjs');
  const { parse, verify } = await import('/page/events.mjs');
  const headers = new Headers({ 'X-Service-Signature': signature });
  const received = [await verify(body, headers, 'secret'), parse(body).event_type];
  const manager = createManagerClient({ url, token });
  const path = { sandbox_id };
  const body_of_start = { shell: 'read line; echo "<$line>"', pty: { cols: 80, rows: 24 } };
  const { process_id } = await manager.POST('/api/v1/sandboxes/{sandbox_id}/processes', { path, body: body_of_start });
  const sandbox = manager.sandbox(sandbox_id);
  const terminal = sandbox.attach(process_id);
  terminal.write('typed\\n');
  for await (const event of terminal) if (event.type === 'exit') break;
  let output = '';
  for await (const event of sandbox.output(process_id)) {
    if (event.type === 'output') output += new TextDecoder().decode(event.bytes);
  }
  const error = await manager.GET('/api/v1/quotas').catch((thrown) => thrown);
  return { received, output, code: error.code, scope: error.details.scope };
}`;

it.skipIf(!has_browser)(`the client and the events run in a browser${without_browser}`, async () => {
  const runtime = new DaemonRuntime();
  const { manager, client } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, {
    runtime,
  });
  const team = await client('team_1', 'sandboxes:write');
  const browser = await startBrowser();
  const page = await browser.newPage();
  await page.route('**/page/*.mjs', (route) => {
    const name = new URL(route.request().url()).pathname.split('/').at(-1) ?? '';
    return route.fulfill({ contentType: 'text/javascript', path: join(ROOT, 'dist', name) });
  });
  // Any document of the manager's origin: pages of others may not call it.
  await page.goto(`${manager.url}/healthz`);
  const facts = { url: manager.url, token: team.token, sandbox_id: await team.claim() };
  const given = JSON.stringify({ ...facts, body: BODY, signature: sign('secret', BODY) });
  expect(await page.evaluate(`(${PROGRAM})(${given})`)).toEqual({
    received: [true, 'process.exited'],
    output: 'typed\r\n<typed>\r\n',
    code: 'forbidden',
    scope: 'quota:read',
  });
});
