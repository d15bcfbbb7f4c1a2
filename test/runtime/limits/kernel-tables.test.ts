import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { hierarchyOf } from '../../../src/base/linux/cgroup.ts';
import { ResourceGroups } from '../../../src/runtime/limits/resource-groups.ts';
import { eventually } from '../../support/eventually.ts';
import { IS_ROOT } from '../../support/rights.ts';
import { groupParent, Sandboxes, spec } from '../../support/runtime/sandboxes.ts';

/** Takes one thing after another of each kind until the kernel refuses, keeps all, and prints why it was refused. */
const TAKES_ALL = `import ctypes, errno, fcntl, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
rt = ctypes.CDLL('librt.so.1', use_errno=True)
def checked(result):
    if result < 0: raise OSError(ctypes.get_errno(), '')
    return result
def pipe():
    ends = os.pipe()
    fcntl.fcntl(ends[1], 1031, 1 << 20)
    return ends
kinds = {
    'inotify': lambda i: checked(libc.inotify_init1(0)),
    'pipes': lambda i: pipe(),
    'queues': lambda i: checked(rt.mq_open(b'/q%d' % i, os.O_CREAT | os.O_RDWR, 0o600, None)),
    'shm': lambda i: checked(libc.shmget(0, 4096, 0o1600)),
}
for kind, take in kinds.items():
    count = 0
    try:
        while count < int(sys.argv[1]):
            take(count)
            count += 1
        print(kind, 'taken', flush=True)
    except OSError as error:
        print(kind, errno.errorcode[error.errno], flush=True)
time.sleep(int(sys.argv[2]))`;

const OPENS = `import os, resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (16000, 16000))
for _ in range(9):
    if os.fork() == 0: break
files = [os.open('/dev/null', os.O_RDONLY) for _ in range(15000)]
print('open', flush=True)
time.sleep(600)`;

const missing = ResourceGroups.open().limitations(false).join('; ');
const [, open_files_max = '0'] =
  /^Max open files +\S+ +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
const is_root = IS_ROOT && existsSync('/usr/bin/python3') && missing === '';

it.skipIf(!is_root)(
  'what the kernel counts by user, and by namespace, one sandbox takes of itself alone',
  async () => {
    const sandboxes = await Sandboxes.open();
    for (const id of ['sbx-1', 'sbx-2']) await sandboxes.runtime.create(spec(id));
    const take = (most: number, seconds: number) =>
      `/usr/bin/python3 - ${most} ${seconds} <<'END'\n${TAKES_ALL}\nEND`;
    await sandboxes.ask('sbx-1', 'POST', '/processes', {
      shell: `(${take(5_000, 600)}\n) > /root/taken 2>&1`,
    });
    const refusals = ['inotify EMFILE', 'pipes EPERM', 'queues EMFILE', 'shm ENOSPC'];
    await eventually(
      async () => expect(await sandboxes.output('sbx-1', 'cat /root/taken')).toBe(refusals.join('\n')),
      { timeout: 20_000 },
    );
    expect(await sandboxes.output('sbx-2', take(5, 0))).toBe(
      'inotify taken\npipes taken\nqueues taken\nshm taken',
    );
  },
);

it.skipIf(!is_root || Number(open_files_max) < 16_000)(
  'open files are paid for by the memory of their sandbox',
  async () => {
    const sandboxes = await Sandboxes.open();
    await sandboxes.runtime.create(spec('sbx-1'));
    const memory = hierarchyOf('memory');
    const group = join(memory?.mount ?? '', groupParent(sandboxes.data_dir), 'sbx-1');
    const file = join(group, memory?.version === 1 ? 'memory.kmem.usage_in_bytes' : 'memory.current');
    const held = () => Number(readFileSync(file, 'utf8'));
    const before = held();
    const shell = `/usr/bin/python3 - > /root/opened <<'END'\n${OPENS}\nEND`;
    await sandboxes.ask('sbx-1', 'POST', '/processes', { shell });
    await eventually(
      async () => expect(await sandboxes.output('sbx-1', 'grep -c open /root/opened')).toBe('10'),
      { timeout: 20_000 },
    );
    expect((held() - before) / (10 * 15_000)).toBeGreaterThan(160);
  },
);
