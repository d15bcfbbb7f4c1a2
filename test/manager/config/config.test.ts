import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { managerConfig } from '../../../src/manager/config/config.ts';

describe('the config', () => {
  it('has the defaults of the contract', () => {
    expect(managerConfig({}, {}, {})).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      database: `sqlite:${join(process.cwd(), 'sandbox-manager.db')}`,
      redis: null,
      runtime: 'local',
      replicas: 1,
      metering: true,
      quota_fail_open: false,
      allow_webhook_cidr: [],
      network: 'auto',
      allow_sandbox_cidr: [],
      bandwidth: {
        egress_bandwidth_bytes_per_second: 0,
        ingress_bandwidth_bytes_per_second: 0,
        bandwidth_burst_bytes: 0,
      },
      node: { memory_mib: null, cpu_millis: null, sandboxes: null, disk_mib: null },
    });
  });

  it('takes the command line before the environment before the file', () => {
    const file = { region: 'file', listen: '[::1]:1', node_sandboxes: 5, allow_webhook_cidr: ['10.0.0.0/8'] };
    const config = managerConfig({ region: 'line' }, { region: 'environment', listen: 'localhost:2' }, file);
    expect(config).toMatchObject({ region: 'line', host: 'localhost', port: 2, node: { sandboxes: 5 } });
    expect(config.allow_webhook_cidr).toHaveLength(1);
    expect(managerConfig({}, {}, { listen: '[::1]:1' })).toMatchObject({ host: '::1', port: 1 });
  });

  it.each([
    ['--config: unknown key colour', {}, { colour: 1 }],
    ['--config: unknown key node-memory; did you mean node_memory?', {}, { 'node-memory': '8Gi' }],
    ['--config: unknown key default_team_quota; did you mean', {}, { default_team_quota: [] }],
    ['--listen must be <host>:<port>', { listen: '8080' }, {}],
    ['--listen must be', { listen: '127.0.0.1:70000' }, {}],
    ['--database must be', { database: 'mysql://x' }, {}],
    ['--database must be', { database: 'sqlite:' }, {}],
    ['--redis must be', { redis: 'localhost' }, {}],
    ['--runtime must be one of', { runtime: 'docker' }, {}],
    ['--region must be', { region: 'a b' }, {}],
    ['--replicas must be', { replicas: '0' }, {}],
    ['--replicas must be', {}, { replicas: [2] }],
    ['--metering must be on or off', { metering: 'maybe' }, {}],
    ['--allow-webhook-cidr must be', { allow_webhook_cidr: ['10.0.0.0/33'] }, {}],
    ['--allow-webhook-cidr must be', {}, { allow_webhook_cidr: { a: 1 } }],
    ['--network must be one of auto, metered, none, host-unmetered', { network: 'host' }, {}],
    [
      '--allow-sandbox-cidr must be address ranges like 10.0.0.0/8, not "10.0.0.0/33"',
      { allow_sandbox_cidr: ['10.1.0.0/16', '10.0.0.0/33'] },
      {},
    ],
    ['--config: egress_bandwidth_bytes_per_second must be', {}, { egress_bandwidth_bytes_per_second: -1 }],
    ['--config: ingress_bandwidth_bytes_per_second must be', {}, { ingress_bandwidth_bytes_per_second: 0.5 }],
    ['--config: ingress_bandwidth_bytes_per_second must be', {}, { ingress_bandwidth_bytes_per_second: '5' }],
    ['--config: bandwidth_burst_bytes must be', {}, { bandwidth_burst_bytes: 2 ** 53 }],
    [
      '--config: unknown key bandwidth_burst_byte; did you mean bandwidth_burst_bytes?',
      {},
      { bandwidth_burst_byte: 1 },
    ],
    ['--node-memory must be a size', { node_memory: '8' }, {}],
    ['--node-cpus must be', { node_cpus: '0' }, {}],
    ['--node-sandboxes must be', { node_sandboxes: '-1' }, {}],
    ['--log-level must be one of', { log_level: 'loud' }, {}],
    ['--redis is required with --replicas above 1', { replicas: '2', database: 'postgres://x/y' }, {}],
    ['--database must be postgres', { replicas: '2', redis: 'redis://x' }, {}],
  ])('is refused: %s', (message, given, file) => {
    expect(() => managerConfig(given, {}, file)).toThrow(message);
    expect(() => managerConfig(given, {}, file)).toThrow(expect.objectContaining({ exit_code: 2 }));
  });
});
