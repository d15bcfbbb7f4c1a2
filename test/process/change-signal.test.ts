import { expect, test } from 'vitest';
import { ChangeSignal } from '../../src/process/change-signal.ts';

test('a waiter that takes the version before it reads misses no change', async () => {
  const changes = new ChangeSignal();
  const seen = changes.version;
  changes.notify();
  await changes.after(seen);
  expect(changes.version).toBe(seen + 1);
});

test('a change wakes every waiter', async () => {
  const changes = new ChangeSignal();
  const waits = [changes.after(changes.version), changes.after(changes.version)];
  changes.notify();
  await Promise.all(waits);
  expect(changes.version).toBe(1);
});

test('a wait ends when its signal aborts, without a change', async () => {
  const changes = new ChangeSignal();
  const over = new AbortController();
  const wait = changes.after(changes.version, over.signal);
  over.abort();
  await wait;
  expect(changes.version).toBe(0);
});
