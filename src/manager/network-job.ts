import type { Log } from '../base/log.ts';
import type { Job } from '../base/schedule.ts';
import type { NetworkState } from '../contract/network.ts';
import type { SandboxBandwidth } from '../contract/sandboxes.ts';
import type { SandboxNetworks } from '../runtime/networks/sandbox-networks.ts';
import { isLimited } from './config/bandwidth.ts';
import { reasonOf } from './database/database-errors.ts';

/** The name of the job, for `Schedule.wake`. */
export const NETWORK_JOB = 'networks';

const REFRESH_MS = 1_000;

/** Keeps the networks of sandboxes up to date, and logs why they are not, once for each reason. */
export function networkJob(networks: SandboxNetworks, log: Log): Job {
  let known: string | null = null;
  const note = (reason: string | null) => {
    if (reason !== null && reason !== known) log.warn({ reason }, 'metered sandboxes may have no network');
    if (reason === null && known !== null) log.info('metered sandboxes have their network again');
    known = reason;
  };
  return {
    name: NETWORK_JOB,
    async run() {
      try {
        await networks.refresh();
        const { mode, reason } = networks.state();
        note(mode === 'metered' ? reason : null);
      } catch (error) {
        note(reasonOf(error));
      }
      return REFRESH_MS;
    },
  };
}

/** Warns that the bandwidth of the config file has no effect here. */
export function warnOfBandwidth(bandwidth: SandboxBandwidth, { mode }: NetworkState, log: Log): void {
  if (mode !== 'host-unmetered' || !isLimited(bandwidth)) return;
  log.warn("the config file's bandwidth is not enforced: the network of sandboxes is not metered");
}
