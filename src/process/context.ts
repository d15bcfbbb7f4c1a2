import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Slots } from '../base/slots.ts';
import type { Emit, WaitingEvents } from './event-queue.ts';
import type { OomWatch } from './exit/oom.ts';
import type { Launcher } from './start/launcher.ts';
import type { Freezer } from './tree/freezer.ts';
import type { TreeFinder } from './tree/tree.ts';

/** Parts of the supervisor that all its processes share. */
export interface ProcessContext {
  clock: Clock;
  log: Log;
  emit: Emit;
  /** Events of all processes that are not stored. */
  waiting: WaitingEvents;
  /** For what holds a whole request in memory. */
  large: Slots;
  /** The plain environment of children, without the daemon's secrets. */
  environment: () => Record<string, string>;
  /** The account of processes whose request names none; null is the daemon's own. */
  default_user: string | null;
  /** From SIGTERM to SIGKILL after a time-out. */
  grace_ms: number;
  /** Numbers from 0 to 1, for jitter. */
  random: () => number;
  boot_id: string;
  trees: TreeFinder;
  oom: OomWatch;
  launcher: Launcher;
  freezer: Freezer;
  /** Whether the processes are paused. */
  isPaused: () => boolean;
  /** Called when a process has ended for good, and again when its last event is stored or its output closes. */
  onIdle: () => void;
}
