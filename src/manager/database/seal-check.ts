import { StartError } from '../../contract/errors.ts';
import type { Seal } from './seal.ts';
import type { SettingStore } from './setting-store.ts';

const KEY = 'seal_check';
const TEXT = 'sandbox-manager';

/** Throws StartError where the database was sealed with another key: nothing in it could be opened. */
export async function checkSeal(seal: Seal, settings: SettingStore): Promise<void> {
  const kept = await settings.keep(KEY, seal.seal(TEXT, KEY));
  try {
    seal.open(kept, KEY);
  } catch (error) {
    throw new StartError("--secret-key-file holds another key than the database's secrets need", 1, error);
  }
}
