import { StartError } from '../../contract/errors.ts';
import type { Seal } from './seal.ts';
import type { SettingStore } from './setting-store.ts';

const KEY = 'seal_check';
const TEXT = 'sandbox-manager';

/** Checks that the secrets in the database can be opened with this key. Throws StartError if they were sealed with another. */
export async function checkSeal(seal: Seal, settings: SettingStore): Promise<void> {
  const kept = await settings.keep(KEY, seal.seal(TEXT, KEY));
  try {
    seal.open(kept, KEY);
  } catch (error) {
    throw new StartError(
      '--secret-key-file holds a different key from the one that sealed the secrets in the database',
      1,
      error,
    );
  }
}
