import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import koffi from 'koffi';
import { describe, expect, it, onTestFinished } from 'vitest';
import { terminalShare } from '../../../src/runtime/limits/machine-share.ts';
import { builtProgram, ProgramCopies } from '../../../src/runtime/local/program.ts';
import { CHECKED_SYSCALLS, DENIED_SYSCALLS } from '../../../src/runtime/seccomp/syscalls.ts';
import { Bubblewrap } from '../../../src/runtime/walls/bubblewrap.ts';
import { NoIsolation } from '../../../src/runtime/walls/no-isolation.ts';
import { startConsumer } from '../../support/consumer.ts';
import { IS_ROOT, needsIsolation } from '../../support/rights.ts';
import { Sandboxes, SECRET, spec, webhook } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

const MACHINE = process.arch as 'x64';

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
    expect(await output("sandboxctl publish '{}' --json")).toMatch(/"event_id":"evt_/);
    expect(await output('cat /etc/os-release')).toBe(readFileSync('/etc/os-release', 'utf8').trim());
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
    // Not looked into at all: on a busy machine that takes longer than an answer is waited for.
    const host_parts = "-path /proc -o -path /usr -o -path '/lib*' -o -path /opt";
    const find = `find / \\( ${host_parts} \\) -prune -o -name 'control*' -print 2>/dev/null | wc -l`;
    expect(await output(find)).toBe('0');
    const refused = 'curl -s -o /dev/null -w "%{http_code}" $SANDBOXD_URL/api/v1/sandbox';
    expect(await output(refused)).toBe('401');
    expect(await output('tr "\\0" " " < /proc/2/cmdline')).toContain('sandboxd.cjs');
    for (const file of ['mem', 'environ', 'maps']) {
      expect(await output(`head -c1 /proc/2/${file} 2>&1 || true`)).toContain('Permission denied');
    }
    expect(await output('env')).not.toContain(SECRET);
  });

  it('can write nothing of the kernel that is not about its own processes', async () => {
    const { output } = await sandbox();
    const write = 'v=$(cat /proc/sys/kernel/core_pattern); echo "$v" > /proc/sys/kernel/core_pattern';
    expect(await output(`(${write}) 2>/dev/null || echo refused`)).toBe('refused');
    const others = "find /proc -path '/proc/[0-9]*' -prune -o -type f -writable -print 2>/dev/null";
    expect(await output(`${others} | head -5`)).toBe('');
    expect(await output('cat /proc/keys /proc/timer_list /proc/kallsyms 2>/dev/null | wc -c')).toBe('0');
    expect(await output('cat /proc/sys/kernel/random/boot_id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it.skipIf(!IS_ROOT)('has its share of terminals, and no more (skipped: needs root)', async () => {
    const { output } = await sandbox();
    const open = 'import os\ntry:\n  while True: os.openpty()\nexcept OSError as error: print(error.errno)';
    const shown = await output(`python3 -c '${open}\nprint(len(os.listdir("/dev/pts")) - 1)'`);
    expect(shown.split('\n').map(Number)).toEqual([28, terminalShare(null).of(512)]);
    expect(await output('script -qec "tty" /dev/null')).toContain('/dev/pts/0');
  });

  it("finds no path of the host, and no file of it, with the sandbox's init", async () => {
    const { sandboxes, output } = await sandbox();
    expect(await output('tr "\\0" "\\n" < /proc/1/environ')).not.toContain(sandboxes.data_dir);
    expect(await output('ls -l /proc/1/fd /proc/1/cwd /proc/1/exe')).not.toContain(sandboxes.data_dir);
    const log = join(sandboxes.data_dir, 'sbx-1', 'daemon.log');
    expect(readFileSync(log, 'utf8')).toContain('"msg":"ready"');
    await output('for fd in /proc/1/fd/*; do echo planted 2>/dev/null > $fd; done; true');
    expect(readFileSync(log, 'utf8')).not.toContain('planted');
  });

  it("writes to devices and changes nothing of the host's nodes", async () => {
    const { output } = await sandbox();
    const before = statSync('/dev/null').ctimeMs;
    expect(await output('chmod 666 /dev/null 2>&1 || echo refused')).toContain('refused');
    // Everybody may write to it. Only root gives sandboxes nodes of their own.
    if (IS_ROOT) expect(await output('touch /dev/zero 2>&1 || echo refused')).toContain('refused');
    expect(await output('echo something > /dev/null && head -c2 /dev/zero | wc -c')).toBe('2');
    expect(statSync('/dev/null').ctimeMs).toBe(before);
  });

  it("finds none of the host's device nodes with its init and its daemon", async () => {
    const { output } = await sandbox();
    const before = statSync('/dev/null').ctimeMs;
    await output('chmod 666 /proc/1/fd/* /proc/2/fd/* 2>/dev/null; true');
    expect(statSync('/dev/null').ctimeMs).toBe(before);
    expect(await output('ls -l /proc/1/fd')).not.toContain('/dev/');
  });

  it('gets no descriptor that is open in the manager, whether or not it is closed on exec', async () => {
    const file = join(scratchFolder(), 'of-the-manager');
    writeFileSync(file, 'a secret');
    const fd = openSync(file, 'r');
    const libc = koffi.load('libc.so.6');
    const inheritable = 200;
    expect(libc.func('int dup2(int, int)')(fd, inheritable)).toBe(inheritable);
    onTestFinished(() => {
      closeSync(inheritable);
      closeSync(fd);
    });
    const { sandboxes, output } = await sandbox();
    expect(await output('ls -l /proc/self/fd /proc/1/fd')).not.toContain('of-the-manager');
    expect(await output(`cat /proc/self/fd/${inheritable} 2>/dev/null || echo none`)).toBe('none');
    const daemon = JSON.parse(readFileSync(join(sandboxes.data_dir, 'sbx-1', 'sandbox.json'), 'utf8')).daemon;
    expect(execFileSync('ls', ['-l', `/proc/${daemon.pid}/fd`]).toString()).not.toContain('of-the-manager');
  });

  it("cannot take away the folders from which its daemon's program and libraries are loaded", async () => {
    const { sandboxes, output } = await sandbox();
    const folders = ['/opt', '/opt/sandboxd', '/etc', '/etc/ssl', '/run', '/lib', '/lib64', '/bin'];
    const rename = 'import os, sys\nfor path in sys.argv[1:]:\n  try: os.rename(path, "/moved")';
    const script = `${rename}; print("moved", path)\n  except OSError: pass`;
    expect(await output(`python3 -c '${script}' ${folders.join(' ')}`)).toBe('');
    expect(await output('echo /root/evil.so 2>/dev/null > /etc/ld.so.preload || echo refused')).toBe(
      'refused',
    );
    expect(await sandboxes.ask('sbx-1', 'GET', '/sandbox')).toMatchObject({ state: 'running' });
  });

  it('cannot put another socket in the place of its control socket', async () => {
    const { sandboxes, output } = await sandbox();
    await output('ln -s /run/elsewhere.sock /run/sandboxd/control.sock; ls -l /run/sandboxd');
    expect(await sandboxes.runtime.inspect('sbx-1')).toBe('running');
    expect(readdirSync(sandboxes.files('sbx-1').run)).toEqual(['control.sock']);
    expect(await sandboxes.ask('sbx-1', 'GET', '/sandbox')).toMatchObject({ sandbox_id: 'sbx-1' });
  });
});

/** Makes system calls by number and prints the error of each. */
const CALLS = `import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for call in sys.argv[1:]:
  ctypes.set_errno(0)
  libc.syscall(*[ctypes.c_long(int(n)) for n in call.split(",")])
  print(ctypes.get_errno())`;

describe('the filter of system calls', () => {
  it('is on for every process of a sandbox, its init and its daemon too', async () => {
    const { output } = await sandbox();
    expect(await output("grep -h '^Seccomp:' /proc/1/status /proc/2/status /proc/self/status")).toBe(
      ['Seccomp:\t2', 'Seccomp:\t2', 'Seccomp:\t2'].join('\n'),
    );
  });

  it('answers a call that is denied with EPERM, and clone3 with ENOSYS', async () => {
    const { output } = await sandbox();
    const { add_key, bpf, io_setup, io_uring_setup, perf_event_open, userfaultfd } = DENIED_SYSCALLS;
    const denied = [add_key, bpf, io_setup, io_uring_setup, perf_event_open, userfaultfd].map(
      (each) => each?.[MACHINE],
    );
    const calls = [...denied, `${CHECKED_SYSCALLS.personality[MACHINE]},4`, CHECKED_SYSCALLS.clone3[MACHINE]];
    const errors = await output(`python3 -c '${CALLS}' ${calls.join(' ')}`);
    expect(errors.split('\n').map(Number)).toEqual([1, 1, 1, 1, 1, 1, 1, 38]);
    const { prctl, seccomp, setsockopt } = CHECKED_SYSCALLS;
    const filters = [`${prctl[MACHINE]},22,2`, `${seccomp[MACHINE]},1`, `${setsockopt[MACHINE]},0,1,26`];
    const refused = await output(`python3 -c '${CALLS}' ${filters.join(' ')}`);
    expect(refused.split('\n').map(Number)).toEqual([22, 22, 1]);
    expect(await output('unshare --mount true 2>&1 || echo refused')).toContain('refused');
  });

  it.for([
    [
      'node',
      `node -e 'new (require("node:worker_threads").Worker)("1", {eval: true}).on("exit", () => console.log("ok"))'`,
    ],
    ['python3', 'python3 -c \'import threading, subprocess; subprocess.run(["echo", "ok"])\''],
    [
      'git',
      'git init -q /root/r && cd /root/r && git -c user.name=a -c user.email=b commit -q --allow-empty -m ok && git log --format=%s',
    ],
    ['curl', 'curl -s -o /dev/null $SANDBOXD_URL/healthz && echo ok'],
    ['strace', "strace -f -o /dev/null sh -c 'true & wait' && echo ok"],
    ['bash', 'bash -ic "sleep 0.01 & fg; echo ok" 2>/dev/null | tail -n1'],
    ['tar', 'tar -cf /tmp/t.tar -C /usr/bin sh && tar -tf /tmp/t.tar >/dev/null && echo ok'],
  ])('lets %s work as before', async ([program = '', shell = ''], { skip }) => {
    const { output } = await sandbox();
    const is_there = await output(`command -v ${program} >/dev/null && echo yes || echo no`);
    if (is_there === 'no') skip(`there is no ${program} in sandboxes of this machine`);
    expect(await output(shell)).toBe('ok');
  });
});

describe('the start', () => {
  const bubblewrap = (path?: string) => {
    needsIsolation();
    return new Bubblewrap(new ProgramCopies(scratchFolder(), builtProgram()), path);
  };

  it('has the filter of system calls, and says what --runtime local-unsafe lacks', async () => {
    const isolation = bubblewrap();
    await isolation.check();
    expect(isolation.limitations()).not.toContain('system calls of sandboxes are not filtered');
    const none = new NoIsolation(new ProgramCopies(scratchFolder(), builtProgram()));
    expect(none.limitations()).toEqual(['sandboxes are not isolated']);
  });

  const no_users = [expect.stringMatching(/^sandboxes have no user of their own: refused$/)];
  // An ordinary user can give sandboxes neither.
  const managers = [
    expect.stringMatching(/^sandboxes have the manager's user/),
    expect.stringMatching(/ terminals /),
  ];

  it.for([
    ['--seccomp', [...(IS_ROOT ? [] : managers), 'system calls of sandboxes are not filtered']],
    ['--unshare-user', [...(IS_ROOT ? no_users : managers), 'sandboxes have no user namespace']],
  ] as [string, string[]][])(
    'does without %s where the machine refuses it, and names that',
    async ([option, limitations]) => {
      const folder = scratchFolder();
      chmodSync(folder, 0o755);
      writeFileSync(
        join(folder, 'bwrap'),
        `#!/bin/sh\ncase "$*" in *${option}*) echo refused >&2; exit 1 ;; esac\n`,
        {
          mode: 0o755,
        },
      );
      const isolation = bubblewrap(`${folder}:/usr/bin:/bin`);
      await isolation.check();
      expect(isolation.limitations()).toEqual(limitations);
    },
  );

  it('says in one line what is missing where there is no bubblewrap', async () => {
    const isolation = new Bubblewrap(new ProgramCopies(scratchFolder(), builtProgram()), scratchFolder());
    await expect(isolation.check()).rejects.toMatchObject({
      name: 'StartError',
      message: expect.stringMatching(/^--runtime local .*bubblewrap.*local-unsafe/),
    });
  });
});
