import { expect, it } from 'vitest';
import { processMetrics } from '../../src/base/process-metrics.ts';
import { VERSION } from '../../src/base/version.ts';

it('the figures of a process are its own', async () => {
  const figures = new Map(processMetrics().map((metric) => [metric.name, metric]));
  const samplesOf = async (name: string) => (await figures.get(name)?.samples()) ?? [];
  const figureOf = async (name: string) => (await samplesOf(name))[0]?.value ?? Number.NaN;
  expect(await samplesOf('build_info')).toEqual([{ labels: { version: VERSION }, value: 1 }]);
  expect(figures.get('process_cpu_seconds_total')?.type).toBe('counter');
  const { user, system } = process.cpuUsage();
  expect(await figureOf('process_cpu_seconds_total')).toBeGreaterThanOrEqual((user + system) / 1e6);
  expect(await figureOf('process_resident_memory_bytes')).toBeGreaterThan(1024 * 1024);
  expect(await figureOf('process_open_fds')).toBeGreaterThan(2);
});
