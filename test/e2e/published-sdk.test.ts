import { it } from 'vitest';
import { startBuiltManager } from '../support/manager/built-manager.ts';
import { usePublishedClient } from '../support/manager/published-client.ts';

it('the published client of this API works unchanged, from claim to deletion', async () => {
  await usePublishedClient(await startBuiltManager(), '/work');
}, 120_000);
