import type { LeaseMetering } from '../sandboxes/ports.ts';

/** Metering with `--metering off`: records nothing. */
export const unmetered: LeaseMetering = {
  async began() {},
  async changed() {},
  async ended() {},
};
