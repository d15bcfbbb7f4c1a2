import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { nodeResources } from '../../src/runtime/node-resources.ts';
import { scratchFolder } from '../support/scratch.ts';

describe('the resources of the node', () => {
  it('are those of the machine', () => {
    const budget = nodeResources(scratchFolder());
    const meminfo = Number(/MemTotal: +(\d+) kB/.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]);
    expect(Math.abs(budget.memory_mib - meminfo / 1024)).toBeLessThan(2);
    expect(budget.cpu_millis).toBe(Number(execFileSync('nproc').toString()) * 1000);
    expect(budget.disk_free_bytes).toBeLessThanOrEqual(budget.disk_bytes);
    expect(budget.disk_free_bytes).toBeGreaterThan(0);
  });
});
