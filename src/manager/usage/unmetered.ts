import type { Metering } from '../sandboxes/ports.ts';

/** `--metering off`: nothing is recorded. */
export const unmetered: Metering = {
  async began() {},
  async changed() {},
  async ended() {},
};
