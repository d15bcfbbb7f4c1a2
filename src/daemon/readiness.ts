import type { Adoption } from '../outbox/store.ts';

/** What readiness is judged by. */
export interface ReadinessFacts {
  state: string;
  adoption: Adoption | null;
  /** Why the outbox cannot be written, or null. */
  outbox_trouble: string | null;
  /** What the watcher has lost or compares at intervals, or null. */
  watcher_degraded: string | null;
}

const NOT_READY: Record<string, string> = {
  starting: 'the daemon is starting',
  awaiting_init: 'the sandbox awaits its init',
  stopping: 'the daemon is shutting down',
};

/** Why the daemon is not ready, or null; and what is lost or polled although it is. Contract section 4, `/readyz`. */
export function readiness(facts: ReadinessFacts): { not_ready: string | null; degraded: string[] } {
  const { adoption, outbox_trouble } = facts;
  const trouble = outbox_trouble === null ? null : `the outbox cannot be written: ${outbox_trouble}`;
  const degraded = [
    adoption?.set_aside ? `a damaged outbox is set aside at ${adoption.set_aside}` : '',
    adoption?.lost_records ? `${adoption.lost_records} acknowledged records are missing` : '',
    facts.watcher_degraded ?? '',
  ];
  return {
    not_ready: NOT_READY[facts.state] ?? trouble,
    degraded: degraded.filter((reason) => reason !== ''),
  };
}
