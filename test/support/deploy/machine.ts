import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa, execaSync } from 'execa';
import { buildImage } from '../../../.build/image/build.ts';
import { unifiedMountPoint } from '../../../src/base/linux/cgroup.ts';
import { eventually } from '../eventually.ts';
import { IS_ROOT } from '../rights.ts';
import { missingPrograms, runSync } from '../run-sync.ts';
import { RunningProgram } from '../running-program.ts';

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const CHECKOUT = here('../../..');
const UNITS = here('../../../fixtures/deploy/systemd');
const TOOLS = ['systemd-nspawn', 'systemctl', 'unshare', 'nsenter', 'setpriv'];
const LEGACY_GROUPS = '/sys/fs/cgroup/systemd';
/** The user of `sandboxd.service`. */
const PASSWD = `root:x:0:0:root:/root:/bin/sh
sandbox:x:1000:1000::/home/sandbox:/bin/sh
nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin
`;
/** What the machine of the test has no use for. */
const MASKED = [
  'dbus.service',
  'dbus.socket',
  'systemd-logind.service',
  'systemd-networkd.service',
  'systemd-resolved.service',
];
const BOOT = 120_000;

/** Why no systemd can be booted here; null if it can. */
export function whyNoMachine(): string | null {
  if (!IS_ROOT) return 'it takes root';
  const missing = missingPrograms(TOOLS);
  if (missing.length > 0) return `${missing.join(', ')} is missing`;
  if (!existsSync('/usr/lib/systemd/systemd')) return 'systemd is missing';
  if (groupsMount() === null) return 'no control groups are mounted that a systemd could use';
  const folder = mkdtempSync(join(tmpdir(), 'sandboxd-test-nspawn-'));
  try {
    makeRoot(folder);
    const command = ['-c', NSPAWN, 'sh', '', folder, '--', '/bin/true'];
    const { failed, stderr } = execaSync('sh', command, { reject: false, lines: true });
    return failed ? `systemd-nspawn starts no container: ${stderr.at(-1)}` : null;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * `sh -c NSPAWN sh GROUP ROOT ARGS…`. In a mount namespace with a /run of its own, because it leaves folders there, and
 * in a control group of its own, where the systemd inside has its groups.
 */
const NSPAWN = `group=$1 root=$2; shift 2
if [ -n "$group" ]; then mkdir "$group" && echo $$ >"$group/cgroup.procs" || exit; fi
exec setpriv --pdeathsig KILL unshare --mount --propagation private sh -c 'mount -t tmpfs tmpfs /run && exec "$@"' sh \
  systemd-nspawn --quiet --register=no --keep-unit --private-network --console=pipe --resolv-conf=off --timezone=off \
  --link-journal=no --directory="$root" --bind-ro=/usr "$@"`;

function groupsMount(): string | null {
  return existsSync(join(LEGACY_GROUPS, 'cgroup.procs')) ? LEGACY_GROUPS : unifiedMountPoint();
}

/** A root without a file of its own but what systemd and the units ask for: /usr is this machine's. */
function makeRoot(root: string): void {
  const etc = join(root, 'etc/systemd/system');
  for (const path of [etc, ...['usr', 'home/sandbox', 'opt', 'var/lib'].map((name) => join(root, name))])
    mkdirSync(path, { recursive: true });
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, join(root, name));
  const files = {
    passwd: PASSWD,
    group: 'root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n',
    'nsswitch.conf': 'passwd: files systemd\ngroup: files systemd\n',
    'machine-id': '0123456789abcdef0123456789abcdef\n',
    'os-release': 'ID=test\n',
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(root, 'etc', name), content);
  if (existsSync('/etc/ld.so.cache')) cpSync('/etc/ld.so.cache', join(root, 'etc/ld.so.cache'));
  for (const unit of MASKED) symlinkSync('/dev/null', join(etc, unit));
  symlinkSync('/usr/lib/systemd/system/multi-user.target', join(etc, 'default.target'));
}

/** A machine that systemd has booted, with the programs where the units look for them and a network of its own. */
export class Machine {
  readonly root: string;
  readonly #folder: string;
  readonly #group: string;
  #nspawn: RunningProgram | null = null;
  #init = 0;

  private constructor(folder: string) {
    this.#folder = folder;
    this.root = join(folder, 'root');
    this.#group = join(groupsMount() as string, folder.split('/').at(-1) as string);
  }

  /** Its root and its programs, not yet booted: `install` and `boot` are next. */
  static async make(): Promise<Machine> {
    const machine = new Machine(mkdtempSync(join(tmpdir(), 'sandboxd-test-machine-')));
    mkdirSync(machine.root);
    makeRoot(machine.root);
    await buildImage(machine.#image);
    const programs = join(machine.#image, 'usr/local/bin');
    symlinkSync('/opt/sandbox-manager/dist/sandbox-manager.cjs', join(programs, 'sandbox-manager'));
    return machine;
  }

  get #image(): string {
    return join(this.#folder, 'image');
  }

  /** Writes a file below the root, with the folders above it. */
  write(path: string, content: string, mode = 0o644): void {
    const file = join(this.root, path);
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, content, { mode });
  }

  /** Enables a unit as `systemctl enable` does; without a text, the one of `fixtures/deploy/systemd`. */
  install(unit: string, text = readFileSync(join(UNITS, unit), 'utf8')): void {
    this.write(`etc/systemd/system/${unit}`, text);
    runSync('systemctl', '--root', this.root, 'enable', unit);
  }

  /** Returns once everything has been started, also what failed. */
  async boot(): Promise<void> {
    const programs = [
      `--bind-ro=${join(this.#image, 'usr/local')}:/usr/local`,
      `--bind-ro=${CHECKOUT}:/opt/sandbox-manager`,
    ];
    const words = [...programs, '--machine=sandbox', '--boot'];
    const nspawn = new RunningProgram(['sh', '-c', NSPAWN, 'sh', this.#group, this.root, ...words]);
    this.#nspawn = nspawn;
    this.#init = await eventually(() => initOf(nspawn), { timeout: BOOT, interval: 50 });
    await eventually(
      async () => {
        const { stdout } = await this.run('systemctl is-system-running || true');
        if (!['running', 'degraded'].includes(stdout.trim())) throw new Error(stdout + nspawn.output);
      },
      { timeout: BOOT, interval: 200 },
    );
  }

  /** What a shell in the machine prints as root; an error where it fails. */
  async run(script: string): Promise<{ stdout: string; stderr: string }> {
    const { stdout, stderr } = await execa(
      'nsenter',
      ['--target', String(this.#init), '--all', 'sh', '-c', script],
      {
        env: { PATH: '/usr/local/bin:/usr/bin:/usr/sbin', LANG: 'C.UTF-8', HOME: '/root' },
        extendEnv: false,
        stripFinalNewline: false,
      },
    );
    return { stdout, stderr };
  }

  /** A property of a unit. */
  async show(unit: string, property: string): Promise<string> {
    return (await this.run(`systemctl show --value --property=${property} ${unit}`)).stdout.trim();
  }

  /** Halts the machine and removes it. */
  async remove(): Promise<void> {
    const nspawn = this.#nspawn;
    const late = setTimeout(() => nspawn?.kill('SIGKILL'), BOOT);
    await nspawn?.stop('SIGTERM');
    clearTimeout(late);
    await eventually(() => removeGroups(this.#group), { timeout: BOOT, interval: 100 });
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** The first process of a machine, as this one sees it. */
function initOf(nspawn: RunningProgram): number {
  if (!nspawn.is_running) throw new Error(nspawn.output);
  const path = `/proc/${nspawn.pid}/task/${nspawn.pid}/children`;
  const init = readFileSync(path, 'utf8')
    .split(' ')
    .filter(Boolean)
    .find((child) => {
      const status = readFileSync(`/proc/${child}/status`, 'utf8');
      return /^Name:\tsystemd$/m.test(status) && /^NSpid:\t\d+\t1$/m.test(status);
    });
  if (init === undefined) throw new Error(`systemd has not begun: ${nspawn.output}`);
  return Number(init);
}

/** Bottom up, as the kernel wants it; throws while a process is in one. */
function removeGroups(group: string): void {
  if (!existsSync(group)) return;
  for (const entry of readdirSync(group, { withFileTypes: true }))
    if (entry.isDirectory()) removeGroups(join(group, entry.name));
  rmdirSync(group);
}
