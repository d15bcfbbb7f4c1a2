import type { Log } from '../../base/log.ts';
import { StartError } from '../../contract/errors.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { SettingStore } from '../database/setting-store.ts';

/** The setting with the id of the data directory that belongs to the database. */
const PLACE_KEY = 'data_dir_id';

/** What the check of a place works with. */
export interface PlaceCheckParts {
  runtime: Pick<Runtime, 'place' | 'list'>;
  settings: SettingStore;
  /** Those of these sandboxes that the database knows. */
  recorded: (sandbox_ids: string[]) => Promise<ReadonlySet<string>>;
  /** `--adopt-data-dir`: the place becomes that of the database, whatever it was. */
  is_meant: boolean;
  log: Log;
}

/**
 * Checks that the place of the sandboxes is that of the database, and marks both at their first use. Throws StartError for
 * another one, and for one whose sandboxes the database does not know. Source: contract section 7, "What runs and what is
 * recorded".
 */
export async function checkPlace({
  runtime,
  settings,
  recorded,
  is_meant,
  log,
}: PlaceCheckParts): Promise<void> {
  const { place } = runtime;
  if (place === null) return;
  // In this order: another replica at its first start marks the place before it tells the database.
  const known = await settings.find(PLACE_KEY);
  const own = place.id();
  if (own !== null && own === known) return;
  if (is_meant) {
    await settings.set(PLACE_KEY, place.mark());
    log.warn({ place: place.name }, 'the data directory is now that of this database');
    return;
  }
  if (known !== null) throw foreign(place.name);
  const ids = await runtime.list();
  if (ids.length > 0 && (await recorded(ids)).size === 0) throw strange(place.name, ids.length);
  if ((await settings.keep(PLACE_KEY, place.mark())) !== place.id()) throw foreign(place.name);
}

/** Whether another place has become that of the database since the start. */
export async function hasMoved({ place }: Pick<Runtime, 'place'>, settings: SettingStore): Promise<boolean> {
  if (place === null) return false;
  const known = await settings.find(PLACE_KEY);
  return place.id() !== known;
}

/** Throws StartError where a command would record in a database what belongs to another one. */
export async function checkAdopting(
  { place }: Pick<Runtime, 'place'>,
  settings: SettingStore,
): Promise<void> {
  const known = await settings.find(PLACE_KEY);
  if (place !== null && known !== null && known !== place.id()) throw foreign(place.name);
}

function foreign(name: string): StartError {
  return new StartError(
    `${name} is not the data directory of this database, which knows another one: give that one, or start once with --adopt-data-dir if this one is meant`,
    2,
  );
}

function strange(name: string, count: number): StartError {
  return new StartError(
    `${name} holds ${count} sandboxes and --database knows none of them: is it the right database? If it is meant, start once with --adopt-data-dir; sandbox-manager orphans list shows them`,
    2,
  );
}
