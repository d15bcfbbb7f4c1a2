import type { Log } from '../../base/log.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import type { Seal } from '../database/seal.ts';
import type {
  Admission,
  DeletionOutbox,
  LeaseMetering,
  LifecycleFeed,
  Sight,
  TrafficMetering,
} from './ports.ts';
import type { SandboxMetrics } from './sandbox-metrics.ts';
import type { SandboxStore } from './sandbox-store.ts';

/** The stores, ports and tools of everything that changes sandboxes. Each part of it receives only the slice it uses. */
export interface SandboxServices {
  /** The time of all replicas. */
  clock: DatabaseClock;
  log: Log;
  store: SandboxStore;
  runtime: Runtime;
  admission: Admission;
  metering: LeaseMetering;
  traffic: TrafficMetering;
  deletion_outbox: DeletionOutbox;
  feed: LifecycleFeed;
  seal: Seal;
  metrics: SandboxMetrics;
  sight: Sight;
  /** This replica's name. */
  replica: string;
}
