import { expect, it } from 'vitest';
import {
  bandwidthOf,
  defaultBandwidth,
  isLimited,
  NO_BANDWIDTH,
} from '../../../src/manager/config/bandwidth.ts';

it('a bandwidth is what is given, completed by the standard; a short burst is raised to one packet', () => {
  const standard = defaultBandwidth({
    egress_bandwidth_bytes_per_second: 10,
    bandwidth_burst_bytes: 1,
    region: 'a',
  });
  expect(standard).toEqual({
    egress_bandwidth_bytes_per_second: 10,
    ingress_bandwidth_bytes_per_second: 0,
    bandwidth_burst_bytes: 65_536,
  });
  expect(
    bandwidthOf({ egress_bandwidth_bytes_per_second: 0, bandwidth_burst_bytes: 65_537 }, standard),
  ).toEqual({
    ...NO_BANDWIDTH,
    bandwidth_burst_bytes: 65_537,
  });
  // 0 is one second of the rate, however short.
  expect(bandwidthOf({ bandwidth_burst_bytes: 0 }, standard).bandwidth_burst_bytes).toBe(0);
});

it('limits nothing without a rate, whatever its burst', () => {
  expect(isLimited({ ...NO_BANDWIDTH, bandwidth_burst_bytes: 5 })).toBe(false);
  expect(isLimited({ ...NO_BANDWIDTH, ingress_bandwidth_bytes_per_second: 1 })).toBe(true);
});
