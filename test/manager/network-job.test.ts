import { Writable } from 'node:stream';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { NO_BANDWIDTH } from '../../src/manager/config/bandwidth.ts';
import { networkJob, warnOfBandwidth } from '../../src/manager/network-job.ts';
import { ScriptedNetworks } from '../support/manager/scripted-networks.ts';

function logged() {
  const lines: [string, string | undefined][] = [];
  const stream = new Writable({
    write(line, _encoding, done) {
      const { msg, reason } = JSON.parse(String(line));
      lines.push([msg, reason]);
      done();
    },
  });
  return { lines, log: pino(stream) };
}

it('trouble with networks is logged once for each reason, and so is its end', async () => {
  const networks = new ScriptedNetworks();
  const { lines, log } = logged();
  const { run } = networkJob(networks, log);
  expect(await run()).toBe(1_000);
  networks.onRefresh = () => Promise.reject(new Error('nft: not permitted'));
  await run();
  await run();
  networks.onRefresh = async () => {};
  networks.mode = { mode: 'metered', reason: 'the meter is restarting', block_all: 'network_namespace' };
  await run();
  await run();
  networks.mode = { mode: 'metered', reason: null, block_all: 'network_namespace' };
  await run();
  await run();
  expect(lines).toEqual([
    ['metered sandboxes may have no network', 'nft: not permitted'],
    ['metered sandboxes may have no network', 'the meter is restarting'],
    ['metered sandboxes have their network again', undefined],
  ]);
});

it('a reason not to be metered is no trouble', async () => {
  const networks = new ScriptedNetworks();
  networks.mode = { mode: 'host-unmetered', reason: 'not root', block_all: null };
  const { lines, log } = logged();
  await networkJob(networks, log).run();
  expect(lines).toEqual([]);
});

it('bandwidth in the config file is warned of exactly where the network is not metered', () => {
  const { lines, log } = logged();
  const bandwidth = { ...NO_BANDWIDTH, egress_bandwidth_bytes_per_second: 1 };
  warnOfBandwidth(bandwidth, { mode: 'metered', reason: null, block_all: 'network_namespace' }, log);
  warnOfBandwidth(NO_BANDWIDTH, { mode: 'host-unmetered', reason: null, block_all: null }, log);
  expect(lines).toEqual([]);
  warnOfBandwidth(bandwidth, { mode: 'host-unmetered', reason: null, block_all: null }, log);
  expect(lines).toHaveLength(1);
});
