import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startConsumer } from '../support/consumer.ts';
import { INTEROP, installed, missing, runProgram } from '../support/interop.ts';
import { startBuiltManager } from '../support/manager/built-manager.ts';

const SECRET = 'a secret of this test';
const title = missing('python');

/** Runs the script that uses the client. */
function use(env: Record<string, string>): Promise<string> {
  const script = join(INTEROP, 'published_client.py');
  return runProgram(installed('python'), [script], { env: { ...env, WEBHOOK_SECRET: SECRET } });
}

describe.skipIf(title !== '')(`the published Python client${title}`, () => {
  it('works unchanged, from claim to deletion, and accepts what the webhook was sent', async () => {
    const consumer = await startConsumer();
    const { url, token } = await startBuiltManager('--allow-webhook-cidr', '127.0.0.0/8');
    const given = { MANAGER_URL: url, MANAGER_TOKEN: token };
    expect(await use({ ...given, WEBHOOK_URL: consumer.url, FOLDER: '/work' })).toBe('done\n');

    const { body, headers } = await consumer.arrival('process.exited');
    const signature = String(headers['x-service-signature']);
    expect(await use({ ...given, BODY: body, SIGNATURE: signature })).toBe('signed\n');
    await consumer.arrival('sandbox.deleted', 2);
  }, 240_000);
});
