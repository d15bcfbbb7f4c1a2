import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Bubblewrap } from '../../src/runtime/isolation.ts';
import { builtProgram, ProgramCopies } from '../../src/runtime/program.ts';
import { startConsumer } from '../support/consumer.ts';
import { scratchFolder } from '../support/scratch.ts';
import { Sandboxes, SECRET, spec, webhook } from './sandboxes.ts';

async function sandbox(): Promise<{ sandboxes: Sandboxes; output: (shell: string) => Promise<string> }> {
  const sandboxes = await Sandboxes.open();
  const consumer = await startConsumer();
  await sandboxes.runtime.create(spec('sbx-1', webhook(consumer.url)));
  return { sandboxes, output: (shell) => sandboxes.output('sbx-1', shell) };
}

const namespaces = (text: string) => [...text.matchAll(/(\w+):\[\d+\]/g)].map(([each]) => each);

describe('a process in a sandbox', () => {
  it('has namespaces of its own, no capability and no way to get one', async () => {
    const { output } = await sandbox();
    const kinds = ['mnt', 'pid', 'ipc', 'uts'];
    const inside = namespaces(
      await output(`ls -l ${kinds.map((kind) => `/proc/self/ns/${kind}`).join(' ')}`),
    );
    const outside = namespaces(
      execFileSync('ls', ['-l', ...kinds.map((kind) => `/proc/self/ns/${kind}`)]).toString(),
    );
    expect(inside).toHaveLength(4);
    expect(inside.filter((each) => outside.includes(each))).toEqual([]);
    const status = await output('cat /proc/self/status');
    for (const set of ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'])
      expect(status).toMatch(new RegExp(`Cap${set}:\t0{16}\n`));
    expect(status).toMatch(/NoNewPrivs:\t1\n/);
    expect(await output('unshare --user --map-root-user true 2>/dev/null || echo refused')).toBe('refused');
    expect(await output('mount -t tmpfs none /mnt 2>/dev/null || echo refused')).toBe('refused');
    expect(await output('hostname')).toBe('sbx-1');
  });

  it('sees its own processes alone, with an init that reaps', async () => {
    const { output } = await sandbox();
    const pids = (await output("ls /proc | grep -E '^[0-9]+$'")).split('\n').map(Number);
    expect(Math.max(...pids)).toBeLessThan(200);
    expect(await output('tr "\\0" " " < /proc/1/cmdline')).not.toContain('/tmp/');
    await output('(sleep 0.05 &) ; sleep 0.3');
    expect(await output("grep -l '^State:.Z' /proc/[0-9]*/status || echo none")).toBe('none');
  });

  it('sees the files of its own root and the host programs, which it cannot change', async () => {
    const { sandboxes, output } = await sandbox();
    expect(await output(`ls ${sandboxes.data_dir} 2>/dev/null || echo none`)).toBe('none');
    expect(await output('cat /etc/shadow 2>/dev/null || echo none')).toBe('none');
    expect(await output('ls /etc/ssl/private 2>/dev/null || echo none')).toBe('none');
    expect(await output('touch /usr/planted 2>/dev/null || echo refused')).toBe('refused');
    expect(await output('touch /opt/sandboxd/dist/planted 2>/dev/null || echo refused')).toBe('refused');
    expect(await output('for tool in sh curl tar grep; do command -v $tool; done')).toContain('/curl');
    await output(
      'echo kept > /root/a; echo kept > /tmp/b; mkdir -p /work; echo kept > /work/c; echo kept > /var/d',
    );
    for (const path of ['root/a', 'tmp/b', 'work/c', 'var/d']) {
      expect(readFileSync(sandboxes.rootfs('sbx-1', path), 'utf8')).toBe('kept\n');
    }
    expect(existsSync(sandboxes.rootfs('sbx-1', 'var/lib/sandboxd/outbox.db'))).toBe(true);
  });

  it('can publish and has no control of its daemon: no token, no socket, no look into its memory', async () => {
    const { sandboxes, output } = await sandbox();
    expect(spawnSync('grep', ['-rqF', SECRET, sandboxes.data_dir]).status).toBe(1);
    expect(
      await output(
        "find / -name 'control*' -not -path '/proc/*' -not -path '/usr/*' -not -path '/opt/*' 2>/dev/null | wc -l",
      ),
    ).toBe('0');
    const refused = 'curl -s -o /dev/null -w "%{http_code}" $SANDBOXD_URL/api/v1/sandbox';
    expect(await output(refused)).toBe('401');
    expect(await output('tr "\\0" " " < /proc/2/cmdline')).toContain('sandboxd.cjs');
    for (const file of ['mem', 'environ', 'maps']) {
      expect(await output(`head -c1 /proc/2/${file} 2>&1 || true`)).toContain('Permission denied');
    }
    expect(await output('env')).not.toContain(SECRET);
  });

  it('cannot put another socket in the place of its control socket', async () => {
    const { sandboxes, output } = await sandbox();
    await output('ln -s /run/elsewhere.sock /run/sandboxd/control.sock; ls -l /run/sandboxd');
    expect(await sandboxes.runtime.inspect('sbx-1')).toBe('running');
    expect(readdirSync(join(sandboxes.data_dir, 'sbx-1', 'run'))).toEqual(['control.sock']);
    expect(await sandboxes.ask('sbx-1', 'GET', '/sandbox')).toMatchObject({ sandbox_id: 'sbx-1' });
  });
});

describe('the start', () => {
  it('says in one line what is missing where there is no bubblewrap', async () => {
    const isolation = new Bubblewrap(new ProgramCopies(scratchFolder(), builtProgram()), scratchFolder());
    await expect(isolation.check()).rejects.toMatchObject({
      name: 'StartError',
      message: expect.stringMatching(/^--runtime local .*bubblewrap.*local-unsafe/),
    });
  });
});
