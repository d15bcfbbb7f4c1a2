import { describe, expect, it } from 'vitest';
import { duration, glance, moment, parseDuration, size } from '../../../src/ctl/terminal/quantity.ts';

describe('a quantity for a person', () => {
  it.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [1_299, '1.2 s'],
    [59_999, '59.9 s'],
    [184_000, '3 min 4 s'],
    [7_500_000, '2 h 5 min'],
    [273_600_000, '3 d 4 h'],
  ])('%d ms is %s', (ms, text) => {
    expect(duration(ms)).toBe(text);
  });

  it.each([
    [-5, '0 s'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [86_399_999, '23 h'],
    [400 * 86_400_000, '400 d'],
    [Number.NaN, '-'],
  ])('%d ms at a glance is %s', (ms, text) => {
    expect(glance(ms)).toBe(text);
  });

  it.each([
    [0, '0 B'],
    [1_023, '1023 B'],
    [1_536, '1.5 KiB'],
    [256 * 1024 * 1024, '256.0 MiB'],
  ])('%d bytes are %s', (bytes, text) => {
    expect(size(bytes)).toBe(text);
  });

  it('shows a time to the second, and that there is none', () => {
    expect(moment('2026-01-02T03:04:05.678Z')).toBe('2026-01-02 03:04:05Z');
    expect(moment(null)).toBe('-');
  });
});

describe('parseDuration', () => {
  it.each([
    ['500ms', 500],
    ['30', 30_000],
    ['30s', 30_000],
    ['1.5m', 90_000],
    ['2h', 7_200_000],
    ['', null],
    ['-1s', null],
    ['1d', null],
    ['1 s', null],
    ['s', null],
  ])('reads %j as %j', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });
});
