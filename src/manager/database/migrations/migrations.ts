import type { Migration } from 'kysely';
import type { Dialect } from '../tables.ts';
import { createEvents } from './events.ts';
import { addErrorDetail, createOutbox, hashEndpoints } from './outbox.ts';
import { createQuotas } from './quotas.ts';
import {
  addBandwidth,
  addIdleTime,
  addMetadata,
  addPersistence,
  addWebhookLimits,
  createSandboxes,
  indexMetadata,
} from './sandboxes.ts';
import { createNetworkPositions, createUsage, offsetPositions } from './usage.ts';

/**
 * The migrations from an empty database to the current schema. They run in the order of their names. A released
 * migration is never changed or renamed.
 */
export function migrationsFor(dialect: Dialect): Record<string, Migration> {
  return {
    '001_tokens_and_sandboxes': { up: (db) => createSandboxes(db) },
    '002_outbox': { up: (db) => createOutbox(db, dialect) },
    '003_quotas': { up: (db) => createQuotas(db, dialect) },
    '004_usage': { up: (db) => createUsage(db, dialect) },
    '005_endpoint_keys': { up: (db) => hashEndpoints(db, dialect) },
    '006_usage_positions': { up: (db) => offsetPositions(db, dialect) },
    '007_sandbox_metadata': { up: (db) => addMetadata(db) },
    '008_sandbox_bandwidth': { up: (db) => addBandwidth(db) },
    '009_attempt_details': { up: (db) => addErrorDetail(db) },
    '010_network_positions': { up: (db) => createNetworkPositions(db) },
    '011_webhook_limits': { up: (db) => addWebhookLimits(db) },
    '012_idle_time': { up: (db) => addIdleTime(db) },
    '013_sandbox_metadata_pairs': { up: (db) => indexMetadata(db, dialect) },
    '014_events': { up: (db) => createEvents(db, dialect) },
    '015_persistence': { up: (db) => addPersistence(db) },
  };
}
