import { describe, expect, it } from 'vitest';
import { Turns } from '../../../src/network/meter/turns.ts';

describe('turns', () => {
  it('go round after 64 KiB each while several wait', () => {
    const turns = new Turns<string>();
    for (const party of ['a', 'b']) turns.wait(party);
    expect(turns.taken('a', 65_000)).toBe(false);
    expect([turns.isTurnOf('a'), turns.isTurnOf('b')]).toEqual([true, false]);
    expect(turns.taken('a', 600)).toBe(true);
    expect([turns.isTurnOf('a'), turns.isTurnOf('b')]).toEqual([false, true]);
    expect(turns.taken('b', 65_536)).toBe(true);
    // 64 bytes too many were taken before.
    expect(turns.taken('a', 65_471)).toBe(false);
    expect(turns.taken('a', 1)).toBe(true);
  });

  it('are taken by small packets as by larger ones, which cost the node as much', () => {
    const turns = new Turns<string>();
    for (const party of ['a', 'b']) turns.wait(party);
    for (let i = 1; i < 256; i++) expect(turns.taken('a', 29)).toBe(false);
    expect(turns.taken('a', 29)).toBe(true);
  });

  it('do not end for a party that waits alone', () => {
    const turns = new Turns<string>();
    turns.wait('a');
    expect(turns.taken('a', 1_000_000)).toBe(false);
    expect(turns.isTurnOf('b')).toBe(false);
    turns.leave('a');
    expect(turns.isTurnOf('b')).toBe(true);
  });

  it('let datagrams get 64 KiB ahead of those who wait', () => {
    const turns = new Turns<string>();
    turns.takenByDatagram(1_000_000);
    turns.wait('a');
    expect(turns.admitsDatagram(65_536)).toBe(true);
    turns.takenByDatagram(65_536);
    expect(turns.admitsDatagram(1)).toBe(false);
    turns.taken('a', 1_000);
    expect([turns.admitsDatagram(1_000), turns.admitsDatagram(1_001)]).toEqual([true, false]);
  });
});
