import { onTestFinished } from 'vitest';
import { openDatabase } from '../../../src/manager/database/database.ts';
import type { Moment } from '../../../src/manager/database/database-clock-store.ts';
import {
  HousekeepingStore,
  type OperationInProgress,
} from '../../../src/manager/sandboxes/housekeeping-store.ts';
import { type ManagedSandboxRow, SandboxStore } from '../../../src/manager/sandboxes/sandbox-store.ts';

/** A row of a running sandbox. */
export function rowOf(sandbox_id: string, overrides: Partial<ManagedSandboxRow> = {}): ManagedSandboxRow {
  return {
    sandbox_id,
    team_id: 'team_1',
    template_id: 'default',
    status: 'running',
    operation: null,
    operation_owner: null,
    operation_until_ms: null,
    operation_fence: 0,
    auto_resume: 0,
    pod_name: 'pod',
    persistence: null,
    runtime_generation: 1,
    memory_mib: 512,
    cpu_millis: 100,
    held_mib: null,
    resources: '{"memory":"512Mi","cpu":0.1}',
    metadata: null,
    disk_mib: null,
    bandwidth: null,
    network: null,
    webhook_url: null,
    webhook_secret_sealed: null,
    watch_dir: null,
    watch_ignore: null,
    webhook_events: null,
    webhook_retry: null,
    env_sealed: null,
    env_names_sealed: null,
    ttl_s: 0,
    hard_ttl_s: 0,
    idle_ttl_s: 0,
    idle_expires_at_ms: null,
    expires_at_ms: null,
    hard_expires_at_ms: null,
    claimed_at_ms: 1,
    created_at_ms: 1,
    updated_at_ms: 1,
    deleted_at_ms: null,
    node: 'local',
    ...overrides,
  };
}

/** A store of sandboxes with these rows; it is closed with the present test. */
export async function storeWith(url: string, ...rows: ManagedSandboxRow[]) {
  const database = await openDatabase(url);
  onTestFinished(() => database.close());
  const store = new SandboxStore(database);
  for (const row of rows) await store.write((tx) => store.insert(tx, row));
  return { store, housekeeping: new HousekeepingStore(database.db), database };
}

/** All operations in progress. */
export async function operationsIn(
  housekeeping: HousekeepingStore,
  at: Moment,
): Promise<OperationInProgress[]> {
  const found: OperationInProgress[] = [];
  for await (const page of housekeeping.operations(() => at)) found.push(...page);
  return found;
}
