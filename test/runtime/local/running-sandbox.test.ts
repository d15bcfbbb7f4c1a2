import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isHelper, parseStat } from '../../../src/base/linux/procfs.ts';
import { ResourceGroups } from '../../../src/runtime/limits/resource-groups.ts';
import { host_table } from '../../../src/runtime/local/host-process.ts';
import { eventually } from '../../support/eventually.ts';
import { publish, recordOf, refusing } from '../../support/runtime/ending-sandboxes.ts';
import { Sandboxes, spec, undeliveredRecord, webhook } from '../../support/runtime/sandboxes.ts';

const why = ResourceGroups.open().frozen.limitation();

/** Has a timer send itself SIGCONT a hundred times a second (`timer_create`, `timer_settime`), and writes meanwhile. */
const WAKES_ITSELF = `
$SIG{CONT} = sub {}; my $event = pack("qiix48", 0, 18, 0); my $timer = pack("i", 0);
syscall(222, 1, $event, $timer) == 0 or die $!;
my $times = pack("q4", 0, 1e7, 0, 1e7);
syscall(223, unpack("i", $timer), 0, $times, 0) == 0 or die $!;
while (1) { open my $file, ">>", "/root/ticks"; print $file "x"; close $file; select undef, undef, undef, 0.005 }
`;

/** Puts an endless loop in place of the code of the first process, whose account it has (`ptrace`). */
const SPINS_FIRST = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
def ask(request, address, data):
    ctypes.set_errno(0)
    said = libc.ptrace(request, 1, address, data)
    assert ctypes.get_errno() == 0, os.strerror(ctypes.get_errno())
    return said
ask(16, None, None)
os.waitpid(1, 0x40000000)
registers = (ctypes.c_ulonglong * 27)()
ask(12, None, ctypes.addressof(registers))
registers[15] = 2 ** 64 - 1
ask(13, None, ctypes.addressof(registers))
word = ask(1, registers[16], None)
ask(4, registers[16], (word & ~0xffff & (2 ** 64 - 1)) | 0xfeeb)
ask(17, None, None)
`;

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

describe('a daemon of a sandbox', () => {
  it('is lost after SIGKILL, with every record and none of its processes', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1', webhook((await refusing()).url)));
    await publish(sandboxes, 10);
    await sandboxes.ask('sbx-1', 'POST', '/processes', { shell: 'setsid sleep 1000 & sleep 1000' });
    const { daemon } = recordOf(sandboxes, 'sbx-1');
    process.kill(daemon?.pid ?? 0, 'SIGKILL');
    await eventually(async () => expect(await runtime.inspect('sbx-1')).toBe('lost'));
    expect(await runtime.pause('sbx-1', null)).toBe('lost');
    expect(await runtime.change('sbx-1', { env: {} })).toBe('lost');
    expect(await runtime.fork('sbx-1', spec('sbx-2'))).toEqual({ outcome: 'lost' });
    expect(await runtime.end('sbx-1')).toEqual({ outcome: 'lost' });
    const { records, lost } = await undeliveredRecord(runtime, 'sbx-1');
    expect(lost).toBe(0);
    expect(records.filter(({ event_type }) => event_type === 'agent.event')).toHaveLength(10);
    expect(records[0]?.event_type).toBe('sandbox.ready');
    await runtime.remove('sbx-1');
    expect(await runtime.list()).toEqual([]);
    expect(await runtime.inspect('sbx-1')).toBe('absent');
    expect(await runtime.liveness('sbx-1')).toBe('unknown');
  });

  it('freezes at a pause what left its session, its parents and its environment, and ends it with the sandbox', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1'));
    // Its command line is nobody else's.
    const seconds = `${100_000 + process.pid}.${Math.floor(performance.now())}`;
    const leaves = `env -i setsid sh -c '(env -i setsid sleep ${seconds} >/dev/null 2>&1 &)' &`;
    await sandboxes.output('sbx-1', `${leaves} wait`);
    const found = () =>
      readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandLine(pid) === `sleep\0${seconds}\0`);
    const stateOf = (pid = '') => /^State:\t(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    await eventually(() => expect(found()).toHaveLength(1));
    const [pid] = found();
    await runtime.pause('sbx-1', null);
    expect(stateOf(pid)).toBe('T');
    await runtime.resume('sbx-1', null);
    await eventually(() => expect(stateOf(pid)).toBe('S'));
    await runtime.end('sbx-1');
    expect(found()).toEqual([]);
  });

  it.skipIf(process.arch !== 'x64' || why !== null)(
    `is frozen at a pause although it makes the kernel wake it (${why ?? 'no timers but of x64'})`,
    async () => {
      const sandboxes = await Sandboxes.open();
      const { runtime } = sandboxes;
      await runtime.create(spec('sbx-1'));
      await sandboxes.ask('sbx-1', 'POST', '/processes', { command: ['perl', '-e', WAKES_ITSELF] });
      const ticks = () => statSync(sandboxes.rootfs('sbx-1', 'root/ticks'), { throwIfNoEntry: false })?.size;
      const grows = async () => {
        const before = ticks() ?? 0;
        await eventually(() => expect(ticks() ?? 0).toBeGreaterThan(before + 5));
      };
      await grows();
      for (const again of ['once', 'twice']) {
        await runtime.pause('sbx-1', again);
        const frozen = ticks();
        // A fork takes as long as many ticks.
        await runtime.fork('sbx-1', spec(`sbx-${again}`));
        expect(ticks()).toBe(frozen);
        await runtime.resume('sbx-1', null);
        await grows();
      }
      await runtime.fork('sbx-1', spec('sbx-2'));
      await grows();
      await runtime.pause('sbx-1', null);
      expect(await runtime.end('sbx-1')).toEqual({ outcome: 'killed' });
      await runtime.remove('sbx-1');
    },
  );

  const no_python = existsSync('/usr/bin/python3') ? null : 'no python3';
  it.skipIf(process.arch !== 'x64' || (why ?? no_python) !== null)(
    `has a first process that is frozen too, whatever runs in it (${why ?? no_python ?? 'x64'})`,
    async () => {
      const sandboxes = await Sandboxes.open();
      const { runtime } = sandboxes;
      await runtime.create(spec('sbx-1'));
      const { daemon } = recordOf(sandboxes, 'sbx-1');
      const [first] = await host_table.read([(await host_table.read([daemon?.pid ?? 0]))[0]?.parent ?? 0]);
      const ticks = () => parseStat(readFileSync(`/proc/${first?.pid}/stat`, 'latin1'))?.cpu_ticks ?? 0;
      const grows = async () => {
        const before = ticks();
        await eventually(() => expect(ticks()).toBeGreaterThan(before + 5));
      };
      await sandboxes.output('sbx-1', `/usr/bin/python3 - <<'END'\n${SPINS_FIRST}\nEND`);
      await grows();
      await runtime.pause('sbx-1', null);
      const paused = ticks();
      await runtime.fork('sbx-1', spec('sbx-2'));
      expect(ticks()).toBe(paused);
      await runtime.resume('sbx-1', null);
      await grows();
      await runtime.pause('sbx-1', null);
      expect(await runtime.end('sbx-1')).toEqual({ outcome: 'killed' });
      await runtime.remove('sbx-1');
    },
  );

  it('lets no other process trace it, or a helper of its own', async () => {
    const sandboxes = await Sandboxes.open();
    await sandboxes.runtime.create(spec('sbx-1'));
    // The processes are looked at by a helper, and files by another one.
    await sandboxes.ask('sbx-1', 'POST', '/processes', { command: ['sleep', '1000'] });
    await sandboxes.ask('sbx-1', 'GET', '/processes');
    await sandboxes.ask('sbx-1', 'GET', '/files/stat?path=/tmp');
    const { daemon } = recordOf(sandboxes, 'sbx-1');
    const all = [...(await host_table.readAll()).values()];
    const own = all.find(({ pid }) => pid === daemon?.pid);
    const helpers = all.filter((stat) => own && isHelper(stat, own));
    const names = helpers.map(({ pid }) => commandLine(String(pid)).split('\0'));
    expect(
      names.map(([name = '', ...rest]) => [name, ...rest].find((each) => /launcher|program/.test(each))),
    ).toEqual(
      expect.arrayContaining([
        expect.stringContaining('launcher'),
        expect.stringContaining('account-program'),
      ]),
    );
    const pids = [daemon?.pid ?? 0, ...helpers.map(({ pid }) => pid)].map(
      (pid) => /^NSpid:.*\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1],
    );
    // What may be traced lets its memory be opened, as the first process does.
    const tries = ['1', ...pids].map((pid) => `(: < /proc/${pid}/mem) 2>/dev/null && echo ${pid}; `).join('');
    expect(await sandboxes.output('sbx-1', `${tries} true`)).toBe('1');
  });

  it('can be ended while it hangs', async () => {
    const sandboxes = await Sandboxes.open();
    await sandboxes.runtime.create(spec('sbx-1', webhook((await refusing()).url)));
    await publish(sandboxes, 3);
    const { daemon } = recordOf(sandboxes, 'sbx-1');
    process.kill(daemon?.pid ?? 0, 'SIGSTOP');
    expect(await sandboxes.runtime.liveness('sbx-1')).toBe('alive');
    expect(await sandboxes.runtime.inspect('sbx-1')).toBe('running');
    expect(await sandboxes.runtime.end('sbx-1')).toEqual({ outcome: 'lost' });
    expect((await undeliveredRecord(sandboxes.runtime, 'sbx-1')).records).toHaveLength(4);
  });
});
