import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { SandboxDisks } from '../../../src/runtime/disk/sandbox-disks.ts';
import { LocalRuntime } from '../../../src/runtime/local/local-runtime.ts';
import { builtProgram, ProgramCopies } from '../../../src/runtime/local/program.ts';
import { UnmeteredNetworks, unmetered } from '../../../src/runtime/networks/unmetered-networks.ts';
import { NoIsolation } from '../../../src/runtime/walls/no-isolation.ts';
import { startConsumer } from '../../support/consumer.ts';
import { Sandboxes, spec, testGroups, webhook } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

describe('create', () => {
  it('returns the existing sandbox for the same spec, and refuses another spec', async () => {
    const { runtime } = await Sandboxes.open();
    const given = spec('sbx-1', { env: { MODE: 'one' } });
    const first = await runtime.create(given);
    expect(await runtime.create(given)).toEqual(first);
    await expect(runtime.create(spec('sbx-1', { env: { MODE: 'two' } }))).rejects.toMatchObject({
      code: 'conflict',
    });
    expect(await runtime.inspect('sbx-1')).toBe('running');
  });

  it.each([
    ['a file', '/etc/passwd', 'webhook.watch_dir'],
    ['the outbox', '/var/lib/sandboxd/x', 'webhook.watch_dir'],
    ['no absolute path', 'work', 'webhook.watch_dir'],
  ])('refuses a watch_dir that is %s, by name, and leaves nothing', async (_, watch_dir, field) => {
    const { runtime, data_dir } = await Sandboxes.open();
    const consumer = await startConsumer();
    const refused = runtime.create(spec('sbx-1', webhook(consumer.url, watch_dir)));
    await expect(refused).rejects.toMatchObject({ code: 'invalid_request', details: { field } });
    expect(await runtime.list()).toEqual([]);
    expect(await runtime.inspect('sbx-1')).toBe('absent');
    expect(consumer.deliveries).toEqual([]);
    expect(execFileSync('ps', ['axe', '-ww', '-o', 'args']).toString()).not.toContain(
      join(data_dir, 'sbx-1'),
    );
  });

  it('lets its daemon deliver to no address that is not public or listed', async () => {
    const sandboxes = await Sandboxes.open('local', join(scratchFolder(), 'data'), ['10.0.0.0/8']);
    const consumer = await startConsumer();
    await sandboxes.runtime.create(spec('sbx-1', webhook(consumer.url)));
    const { deliveries } = await sandboxes.ask('sbx-1', 'GET', '/webhook/deliveries');
    const path = `/webhook/deliveries/${deliveries[0].event_id}`;
    const first = async () => (await sandboxes.ask('sbx-1', 'GET', path)).attempts[0];
    await expect.poll(first, { timeout: 60_000 }).toMatchObject({ error: 'blocked', status: null });
    expect(consumer.deliveries).toEqual([]);
  });

  it('refuses an environment that no process can have', async () => {
    const { runtime } = await Sandboxes.open();
    const refused = runtime.create(spec('sbx-1', { env: { 'A=B': 'c' } }));
    await expect(refused).rejects.toMatchObject({
      code: 'invalid_request',
      details: { field: expect.stringMatching(/^env/) },
    });
    expect(await runtime.list()).toEqual([]);
  });

  it('says why the daemon does not start, and leaves nothing', async () => {
    const programs = new ProgramCopies(scratchFolder(), { ...builtProgram(), dist: scratchFolder() });
    const isolation = new NoIsolation(programs);
    const log = createLog('silent');
    const data_dir = join(scratchFolder(), 'data');
    const groups = testGroups(data_dir);
    const parts = {
      data_dir,
      isolation,
      programs,
      disks: new SandboxDisks('not isolated'),
      groups,
      networks: new UnmeteredNetworks(unmetered(null)),
      webhook_cidrs: [],
      clock: systemClock,
      log,
    };
    const runtime = new LocalRuntime(parts);
    await runtime.start();
    await expect(runtime.create(spec('sbx-1'))).rejects.toMatchObject({
      code: 'internal_error',
      message: expect.stringContaining('it exited with 1'),
    });
    expect(await runtime.list()).toEqual([]);
  });

  it('runs sandboxes side by side, each with its own port, files and consumer', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    const [one, two] = [await startConsumer(), await startConsumer()];
    await Promise.all([
      runtime.create(spec('sbx-1', webhook(one.url, '/work'))),
      runtime.create(spec('sbx-2', webhook(two.url, '/work'))),
    ]);
    const shell = 'mkdir -p /work && echo $SANDBOXD_URL > /work/url; cat /work/url';
    const urls = await Promise.all(
      ['sbx-1', 'sbx-2'].map((sandbox_id) => sandboxes.output(sandbox_id, shell)),
    );
    expect(urls[0]).not.toBe(urls[1]);
    await Promise.all([one.arrival('file.modified'), two.arrival('file.modified')]);
    const ids = (consumer: typeof one) =>
      new Set(consumer.deliveries.map(({ body }) => JSON.parse(body).sandbox_id));
    expect(ids(one)).toEqual(new Set(['sbx-1']));
    expect(ids(two)).toEqual(new Set(['sbx-2']));
    await runtime.remove('sbx-1');
    expect(await sandboxes.output('sbx-2', 'cat /work/url')).toBe(urls[1]);
  });

  it('keeps a changed environment from what went before', async () => {
    const sandboxes = await Sandboxes.open();
    await sandboxes.runtime.create(spec('sbx-1', { env: { A: '1', B: '2' } }));
    expect(await sandboxes.runtime.change('sbx-1', { env: { B: '3', C: '4' }, memory_mib: 256 })).toBe(
      'done',
    );
    expect(await sandboxes.output('sbx-1', 'echo "$A $B $C"')).toBe('3 4');
    const record = JSON.parse(readFileSync(join(sandboxes.data_dir, 'sbx-1', 'sandbox.json'), 'utf8'));
    expect(record.memory_mib).toBe(256);
  });
});
