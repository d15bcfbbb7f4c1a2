import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LocalNode } from '../../../src/runtime/local/local-node.ts';
import { scratchFolder } from '../../support/scratch.ts';

describe('the resources of the node', () => {
  it('are those of the machine', () => {
    const budget = new LocalNode(scratchFolder()).resources();
    const meminfo = Number(/MemTotal: +(\d+) kB/.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]);
    expect(Math.abs(budget.memory_mib - meminfo / 1024)).toBeLessThan(2);
    expect(budget.cpu_millis).toBe(Number(execFileSync('nproc').toString()) * 1000);
  });

  it("are of the disk what is free and what sandboxes' disks take already", () => {
    const folder = scratchFolder();
    mkdirSync(join(folder, 'sbx-1'));
    writeFileSync(join(folder, 'sbx-1', 'disk.img'), Buffer.alloc(300 * 1024 * 1024, 1));
    const node = new LocalNode(folder);
    const taken = node.resources().disk_bytes - node.freeDiskBytes();
    // Others write meanwhile.
    expect(Math.abs(taken / 1024 / 1024 - 300)).toBeLessThan(100);
  });
});
