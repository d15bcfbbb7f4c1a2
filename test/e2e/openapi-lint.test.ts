import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startDaemon } from '../support/daemon/running-daemon.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { scratchFolder } from '../support/scratch.ts';

const LINTER = fileURLToPath(import.meta.resolve('@redocly/cli/bin/cli.js'));

it('both documents pass the recommended rules of the OpenAPI linter, without an error or a warning', async () => {
  const { manager } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`);
  const { call } = await startDaemon('--webhook-url', 'http://127.0.0.1:9/', '--shutdown-grace-ms', '0');
  const documents = {
    'sandbox-manager.json': await (await fetch(`${manager.url}/openapi.json`)).json(),
    'sandboxd.json': (await call('GET', '/openapi.json', { token: null })).json,
  };
  const folder = scratchFolder();
  for (const [name, document] of Object.entries(documents)) {
    writeFileSync(join(folder, name), JSON.stringify(document));
  }
  for (const name of Object.keys(documents)) expect(await problemsIn(folder, name), name).toEqual([]);
  // The linter sees what is wrong.
  writeFileSync(
    join(folder, 'broken.json'),
    '{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{}}',
  );
  expect(await problemsIn(folder, 'broken.json')).not.toEqual([]);
});

async function problemsIn(folder: string, name: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [LINTER, 'lint', name, '--extends=recommended', '--format=json', '--max-problems=1000'],
    {
      cwd: folder,
      // Nothing is asked of the network.
      env: { HOME: folder, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
      maxBuffer: 2 ** 26,
    },
  ).catch((error: { stdout: string }) => error);
  const { problems } = JSON.parse(stdout) as { problems: Problem[] };
  return problems.map(
    ({ severity, ruleId, message, location }) => `${severity} ${ruleId} ${location[0]?.pointer}: ${message}`,
  );
}

interface Problem {
  severity: string;
  ruleId: string;
  message: string;
  location: { pointer?: string }[];
}
