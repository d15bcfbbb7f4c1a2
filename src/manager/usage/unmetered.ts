import type { Metering } from '../sandboxes/ports.ts';

/** Metering with `--metering off`: records nothing. */
export const unmetered: Metering = {
  async began() {},
  async changed() {},
  async ended() {},
};
