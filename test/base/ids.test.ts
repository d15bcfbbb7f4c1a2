import fc from 'fast-check';
import { expect, it } from 'vitest';
import { newId, newIds } from '../../src/base/ids.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const wall_ms = fc.integer({ min: 0, max: 2 ** 48 - 1 });

/** The time in a UUIDv7: its first 48 bits. */
const timeOf = (uuid: string) => Number.parseInt(uuid.replaceAll('-', '').slice(0, 12), 16);

it('makes event ids of a prefix and a UUIDv7 of the given time', () => {
  fc.assert(
    fc.property(wall_ms, fc.nat(20), (at_ms, count) => {
      const ids = newIds('evt_', count, at_ms);
      expect(ids).toHaveLength(count);
      for (const id of ids) {
        expect(id.slice(0, 4)).toBe('evt_');
        expect(id.slice(4)).toMatch(UUID_V7);
        expect(timeOf(id.slice(4))).toBe(at_ms);
      }
    }),
  );
});

it('never makes an id twice, also within one millisecond', () => {
  const ids = [...newIds('evt_', 5_000, 1), ...newIds('evt_', 5_000, 1)];
  expect(new Set(ids).size).toBe(10_000);
});

it('makes ids that sort by their time', () => {
  fc.assert(
    fc.property(wall_ms, wall_ms, (a_ms, b_ms) => {
      fc.pre(a_ms !== b_ms);
      const [a, b] = [newId('sbx_', a_ms), newId('sbx_', b_ms)];
      expect(a < b).toBe(a_ms < b_ms);
    }),
  );
});
