import { readdirSync } from 'node:fs';
import { gauge, labelledGauge, type Metric } from './metrics.ts';
import { VERSION } from './version.ts';

/** The version of the program and the figures of its process, for the registry. Source: contract section 8. */
export function processMetrics(): Metric[] {
  return [
    labelledGauge('build_info', 'Always 1; the label is the version.', 'version', () => ({ [VERSION]: 1 })),
    {
      name: 'process_cpu_seconds_total',
      type: 'counter',
      help: 'CPU time of the process.',
      samples: () => {
        const { user, system } = process.cpuUsage();
        return [{ value: (user + system) / 1e6 }];
      },
    },
    gauge(
      'process_start_time_seconds',
      'When the process started, in seconds since 1970.',
      () => performance.timeOrigin / 1_000,
    ),
    gauge('process_resident_memory_bytes', 'Resident memory of the process.', () =>
      process.memoryUsage.rss(),
    ),
    gauge(
      'process_open_fds',
      'Open file descriptors of the process.',
      () => readdirSync('/proc/self/fd').length,
    ),
  ];
}
