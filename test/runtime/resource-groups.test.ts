import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { ResourceGroups } from '../../src/runtime/resource-groups.ts';
import { scratchFolder } from '../support/scratch.ts';

describe('the limits of memory and cores', () => {
  it('are written to a control group of the sandbox', () => {
    const mount = scratchFolder();
    const groups = ResourceGroups.open(createLog('silent'), mount);
    expect(readFileSync(join(mount, 'cgroup.subtree_control'), 'utf8')).toBe('+memory +cpu');
    const folder = groups.make('sbx-1') ?? '';
    groups.limit('sbx-1', { memory_mib: 256, cpu_millis: 100 });
    expect(readFileSync(join(folder, 'memory.max'), 'utf8')).toBe('268435456');
    expect(readFileSync(join(folder, 'cpu.max'), 'utf8')).toBe('10000 100000');
  });

  it('are logged as not enforced if control groups cannot be created', () => {
    const lines: string[] = [];
    const log = createLog('info', { write: (line) => void lines.push(line) });
    const groups = ResourceGroups.open(log, join(scratchFolder(), 'missing'));
    expect(groups.make('sbx-1')).toBeNull();
    groups.limit('sbx-1', { memory_mib: 256, cpu_millis: 100 });
    groups.remove('sbx-1');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('not enforced');
  });
});
