import type { Job } from '../base/schedule.ts';
import { WRITE_PROBE_MS } from '../contract/defaults.ts';
import type { Queries } from './database/database.ts';
import { SettingStore } from './database/setting-store.ts';
import type { WriteState } from './database/write-state.ts';

/** The setting that is written to see whether anything can be. */
const PROBE = 'write_probe';

/** Writes something every few seconds; `db` notes what refuses it. */
export function writeProbeJob(db: Queries, writes: WriteState): Job {
  const settings = new SettingStore(db);
  let runs = 0;
  return {
    name: 'write probe',
    async run() {
      try {
        runs += 1;
        await settings.set(PROBE, String(runs));
        writes.taken();
      } catch (error) {
        writes.note(error);
      }
      return WRITE_PROBE_MS;
    },
  };
}
