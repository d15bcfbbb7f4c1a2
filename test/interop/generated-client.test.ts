import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startConsumer } from '../support/consumer.ts';
import { startDaemon } from '../support/daemon/running-daemon.ts';
import { INTEROP, missing, runInstalled } from '../support/interop.ts';
import { startBuiltManager } from '../support/manager/built-manager.ts';
import { scratchFolder } from '../support/scratch.ts';

const GENERATOR = 'openapi-python-client';
const title = missing(GENERATOR);

/** Bodies that are bytes, whatever they hold. */
const BYTES = ['application/x-tar', 'application/x-ndjson', '*/*'];

/** Makes a client from a document and installs it into `site`. */
async function install(name: string, document: unknown, site: string): Promise<void> {
  const folder = scratchFolder();
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document));
  writeFileSync(
    join(folder, 'config.json'),
    JSON.stringify({
      package_name_override: name,
      project_name_override: name,
      content_type_overrides: Object.fromEntries(BYTES.map((type) => [type, 'application/octet-stream'])),
      post_hooks: [],
    }),
  );
  const options = ['--path', 'openapi.json', '--config', 'config.json', '--output-path', 'client'];
  const printed = await runInstalled(
    GENERATOR,
    ['generate', ...options, '--meta', 'setup', '--fail-on-warning'],
    {
      cwd: folder,
    },
  );
  expect(printed).not.toContain('WARNING');
  await runInstalled(
    'pip',
    ['install', '--quiet', '--no-deps', '--no-build-isolation', '--no-index', '--target', site, './client'],
    { cwd: folder },
  );
}

describe.skipIf(title !== '')(`a Python client that is generated from the documents${title}`, () => {
  it('claims a sandbox, runs a process, writes and reads a file, sees deliveries and deletes it', async () => {
    const consumer = await startConsumer();
    const manager = await startBuiltManager('--allow-webhook-cidr', '127.0.0.0/8');
    const daemon = await startDaemon('--webhook-url', consumer.url, '--sandbox-id', 'sbx_1');
    const site = scratchFolder();
    await install('sandbox_manager_client', await (await fetch(`${manager.url}/openapi.json`)).json(), site);
    await install('sandboxd_client', (await daemon.call('GET', '/openapi.json', { token: null })).json, site);
    const printed = await runInstalled('python', [join(INTEROP, 'generated_client.py')], {
      cwd: site,
      env: {
        PYTHONPATH: site,
        MANAGER_URL: manager.url,
        MANAGER_TOKEN: manager.token,
        DAEMON_URL: `http://127.0.0.1:${daemon.port}`,
        DAEMON_TOKEN: daemon.token,
        WEBHOOK_URL: consumer.url,
      },
    });
    expect(printed).toBe('manager done\ndaemon done\n');
    await consumer.arrival('sandbox.deleted');
    expect(consumer.of('process.exited')[0]?.event.payload).toMatchObject({ process_id: 'p', exit_code: 3 });
    expect(consumer.of('agent.event')[0]?.event.payload).toEqual({ step: 'tests' });
  }, 180_000);
});
