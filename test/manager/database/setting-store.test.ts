import { expect, it } from 'vitest';
import { SettingStore } from '../../../src/manager/database/setting-store.ts';
import { storeWith } from '../../support/manager/sandbox-rows.ts';
import { describeOnStores } from '../../support/stores.ts';

describeOnStores('the store of settings', (fresh) => {
  it('keeps the value that was there first', async () => {
    const { database } = await storeWith(await fresh());
    const settings = new SettingStore(database.db);
    expect(await settings.keep('a', '1')).toBe('1');
    expect(await settings.keep('a', '2')).toBe('1');
  });
});
