import { describe, expect, it } from 'vitest';
import * as defaults from '../../src/contract/defaults.ts';
import { contractTable } from '../support/contract.ts';

/** The default that the contract tells for an option of `sandboxd`. */
function toldFor(option: string): string {
  const row = contractTable('### Options').find(([flags]) => flags?.includes(`\`--${option} `));
  if (!row) throw new Error(`the contract has no option --${option}`);
  const position = [...(row[0] ?? '').matchAll(/--([a-z-]+)/g)].findIndex(([, name]) => name === option);
  const told = (row[1] ?? '').split(/, /);
  return (told[position] ?? told[0] ?? '').replaceAll('`', '');
}

describe('the default that the contract tells', () => {
  it.each([
    ['host', defaults.DEFAULT_HOST],
    ['port', String(defaults.DEFAULT_PORT)],
    ['state-dir', defaults.DEFAULT_STATE_DIR],
    ['attempt-timeout-ms', String(defaults.ATTEMPT_TIMEOUT_MS)],
    ['delivery-window-ms', String(defaults.DELIVERY_WINDOW_MS)],
    ['delivery-concurrency', String(defaults.DELIVERY_CONCURRENCY)],
    ['outbox-max-bytes', `${defaults.OUTBOX_MAX_BYTES / 1024 / 1024} MiB`],
    ['outbox-max-records', '1 000 000'],
    ['shutdown-grace-ms', String(defaults.SHUTDOWN_GRACE_MS)],
  ])('for --%s is the one that holds', (option, value) => {
    expect(toldFor(option)).toBe(value);
  });

  it('for the number of records is written in groups', () => {
    expect(defaults.OUTBOX_MAX_RECORDS.toLocaleString('fr').replaceAll(/\s/g, ' ')).toBe('1 000 000');
  });
});

it('are positive numbers, or texts that are not empty', () => {
  for (const [name, value] of Object.entries(defaults)) {
    if (typeof value === 'number') expect([name, Number.isFinite(value) && value > 0]).toEqual([name, true]);
    if (typeof value === 'string') expect([name, value]).not.toEqual([name, '']);
  }
});

it('grow a backoff from its first wait to its cap within the window', () => {
  expect(defaults.BACKOFF_FIRST_MS).toBeLessThan(defaults.BACKOFF_CAP_MS);
  expect(defaults.BACKOFF_CAP_MS).toBeLessThan(defaults.DELIVERY_WINDOW_MS);
  expect(defaults.RETRY_AFTER_CAP_MS).toBeLessThan(defaults.DELIVERY_WINDOW_MS);
  expect(defaults.CONNECT_TIMEOUT_MS).toBeLessThan(defaults.ATTEMPT_TIMEOUT_MS);
  expect(defaults.ATTEMPT_TIMEOUT_MS).toBeLessThan(defaults.OUTBOX_LEASE_MS);
  expect(defaults.RESTART_BACKOFF_FIRST_MS).toBeLessThan(defaults.RESTART_BACKOFF_CAP_MS);
});
