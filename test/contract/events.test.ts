import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { EVENT_TYPES } from '../../src/contract/events.ts';
import { contractTable } from '../support/contract.ts';

const FIXTURES = resolve(import.meta.dirname, '../../fixtures/events');

it('are the kinds that the contract lists, in its order', () => {
  const listed = contractTable('### Event kinds and payloads').map(([kind]) => kind?.replaceAll('`', ''));
  expect([...EVENT_TYPES]).toEqual(listed);
});

it('have a golden body each, and no other kind has', () => {
  const golden = readdirSync(FIXTURES).map((name) => name.replace(/\.[a-z]+$/, ''));
  expect([...new Set(golden)].sort()).toEqual([...EVENT_TYPES].sort());
});
