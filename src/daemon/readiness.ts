/** What readiness is judged by. */
export interface ReadinessFacts {
  state: string;
  /** What was found damaged or missing in the outbox. */
  outbox_damages: readonly string[];
  /** Why the outbox cannot be written, or null. */
  outbox_trouble: string | null;
  /** What the watcher has lost or compares at intervals, or null. */
  watcher_degraded: string | null;
}

const NOT_READY: Record<string, string> = {
  starting: 'the daemon is starting',
  awaiting_init: 'the sandbox awaits its init',
};

const STOPPING = 'the daemon is shutting down';

/** Why the daemon is not ready, or null; and what is lost or polled although it is. Contract section 4, `/readyz`. */
export function readiness(facts: ReadinessFacts): { not_ready: string | null; degraded: string[] } {
  const { outbox_trouble, outbox_damages, watcher_degraded } = facts;
  const trouble = outbox_trouble === null ? null : `the outbox cannot be written: ${outbox_trouble}`;
  return {
    not_ready: facts.state === 'stopping' ? STOPPING : (trouble ?? NOT_READY[facts.state] ?? null),
    degraded: [...outbox_damages, ...(watcher_degraded === null ? [] : [watcher_degraded])],
  };
}
