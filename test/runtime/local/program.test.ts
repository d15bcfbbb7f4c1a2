import { cpSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { SandboxDisks } from '../../../src/runtime/disk/sandbox-disks.ts';
import { LocalRuntime } from '../../../src/runtime/local/local-runtime.ts';
import { builtProgram, ProgramCopies } from '../../../src/runtime/local/program.ts';
import { UnmeteredNetworks, unmetered } from '../../../src/runtime/networks/unmetered-networks.ts';
import { Bubblewrap } from '../../../src/runtime/walls/bubblewrap.ts';
import { startConsumer } from '../../support/consumer.ts';
import { needsIsolation } from '../../support/rights.ts';
import { LOOPBACK, Sandboxes, spec, testGroups, webhook } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

async function runtimeFrom(dist: string, data_dir: string): Promise<Sandboxes> {
  needsIsolation();
  const programs = new ProgramCopies(data_dir, { ...builtProgram(), dist });
  const log = createLog('silent');
  const groups = testGroups(data_dir);
  const parts = {
    data_dir,
    programs,
    groups,
    disks: new SandboxDisks(null),
    networks: new UnmeteredNetworks(unmetered(null)),
    webhook_cidrs: LOOPBACK,
    clock: systemClock,
    log,
  };
  const runtime = new LocalRuntime({ ...parts, isolation: new Bubblewrap(programs) });
  await runtime.start();
  return new Sandboxes(data_dir, runtime);
}

describe("the daemon's program", () => {
  it('stays whole for running sandboxes while it is replaced, and goes when none is left of them', async () => {
    const [dist, data_dir] = [join(scratchFolder(), 'dist'), join(scratchFolder(), 'data')];
    cpSync(builtProgram().dist, dist, { recursive: true });
    const consumer = await startConsumer();
    const old = await runtimeFrom(dist, data_dir);
    await old.runtime.create(spec('sbx-1', webhook(consumer.url)));
    const [version = ''] = readdirSync(join(data_dir, '.program'));
    expect(statSync(join(data_dir, '.program', version, 'node')).mode & 0o777).toBe(0o111);

    rmSync(dist, { recursive: true });
    mkdirSync(dist);
    cpSync(builtProgram().dist, dist, { recursive: true });
    writeFileSync(join(dist, 'another.cjs'), '');
    const next = await runtimeFrom(dist, data_dir);
    expect(await next.output('sbx-1', 'echo on')).toBe('on');
    await next.ask('sbx-1', 'POST', '/webhook/publish', { payload: {} });
    await consumer.arrival('agent.event');
    await next.runtime.create(spec('sbx-2'));
    expect(readdirSync(join(data_dir, '.program'))).toHaveLength(2);

    await next.runtime.remove('sbx-1');
    const last = await runtimeFrom(dist, data_dir);
    expect(readdirSync(join(data_dir, '.program'))).not.toContain(version);
    expect(await last.output('sbx-2', 'echo on')).toBe('on');
    await last.runtime.remove('sbx-2');
  });
});
