import { it } from 'vitest';
import { startConsumer } from '../support/consumer.ts';
import { startBuiltManager } from '../support/manager/built-manager.ts';
import { usePublishedClient } from '../support/manager/published-client.ts';

it('the published client of this API works unchanged, from claim to deletion', async () => {
  const manager = await startBuiltManager('--allow-webhook-cidr', '127.0.0.0/8');
  await usePublishedClient(manager, '/work', await startConsumer());
}, 120_000);
