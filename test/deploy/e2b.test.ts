import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { IS_ROOT } from '../support/rights.ts';
import { scratchFolder } from '../support/scratch.ts';

vi.setConfig({ testTimeout: 180_000 });

const WITHIN = { timeout: 120_000, interval: 200 };
const DAEMON = fileURLToPath(new URL('../../dist/sandboxd.cjs', import.meta.url));
const FILES = fileURLToPath(new URL('../../fixtures/deploy/e2b', import.meta.url));
/** Where `test/interop/tools.sh` installs the SDK. */
const PYTHON = fileURLToPath(new URL('../../node_modules/.cache/deploy/bin/python', import.meta.url));
const PRINT = `
import json, e2b, template
from importlib.metadata import version
made = json.loads(e2b.Template.to_json(template.template))
print(json.dumps({"version": version("e2b"), "made": made, "init": template.INIT}))
`;

/** Like a machine of E2B: its own network, its user, and nothing of this one's state. */
const MACHINE = `ip link set lo up && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib && mount -t tmpfs tmpfs /root &&
  mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/group" /etc/group && exec setpriv --pdeathsig KILL sh -c "$2"`;

interface Step {
  type: string;
  args: string[];
  filesHash?: string;
}

interface Printed {
  version: string;
  made: { fromImage: string; startCmd: string; readyCmd: string; steps: Step[] };
  init: string;
}

/** What the SDK would send to E2B: from copies of the files, beside a tree in the place of the bundle's. */
function made(): Printed {
  const folder = scratchFolder();
  const files = join(folder, 'fixtures/deploy/e2b');
  cpSync(FILES, files, { recursive: true });
  const programs = join(folder, 'dist/image/usr/local/bin');
  mkdirSync(programs, { recursive: true });
  writeFileSync(join(programs, 'sandboxd'), 'in the place of the program');
  const options = { cwd: files, encoding: 'utf8' as const };
  return JSON.parse(execFileSync(PYTHON, ['-B', '-W', 'error', '-c', PRINT], options));
}

function whyNot(): string | null {
  if (spawnSync(PYTHON, ['-c', 'import e2b']).status !== 0) return 'e2b of PyPI is not installed';
  if (!IS_ROOT) return 'it takes root';
  const missing = ['unshare', 'nsenter', 'setpriv', 'tini', 'curl', 'ip'].filter(
    (tool) => spawnSync('sh', ['-c', `command -v ${tool}`]).status !== 0,
  );
  return missing.length > 0 ? `${missing.join(', ')} is missing` : null;
}

const why_not = whyNot();
if (why_not !== null) console.log(`skipped, the template of E2B: ${why_not}`);

describe.skipIf(why_not !== null)('the template of E2B', () => {
  it('is one that the SDK takes, whole and without a warning', () => {
    const { version, made: template } = made();
    expect(version).toBe('2.63.0');
    expect(template.fromImage).toBe('debian:12-slim');
    const [copied] = template.steps.filter(({ type }) => type === 'COPY');
    expect(copied).toMatchObject({ args: ['usr', '/usr', '', ''], filesHash: expect.stringMatching(/./) });
    // The daemon is root's, and E2B has its own port for itself.
    expect(template.steps.filter(({ type }) => type === 'USER').at(-1)?.args).toEqual(['root']);
    expect(template.startCmd).not.toContain('49983');
  });

  it('its commands start a daemon that is ready, becomes a sandbox of its own, and keeps its secret', async () => {
    const { made: template, init } = made();
    const folder = scratchFolder();
    chmodSync(folder, 0o755);
    symlinkSync(DAEMON, join(folder, 'sandboxd'));
    const passwd = readFileSync('/etc/passwd', 'utf8').replace(/^user:.*\n/m, '');
    writeFileSync(join(folder, 'passwd'), `${passwd}user:x:61234:61234::/home/user:/bin/sh\n`);
    const group = readFileSync('/etc/group', 'utf8').replace(/^user:.*\n/m, '');
    writeFileSync(join(folder, 'group'), `${group}user:x:61234:\n`);
    const env = { PATH: `${folder}:${process.env.PATH}` };
    const machine = ['--mount', '--net', '--propagation', 'private', 'sh', '-c', MACHINE, 'sh'];
    const child = spawn('unshare', [...machine, folder, template.startCmd], { env, stdio: 'ignore' });
    const ended = once(child, 'exit');
    onTestFinished(async () => {
      child.kill('SIGTERM');
      await ended;
    });
    const inside = (script: string, input = '') =>
      execFileSync('nsenter', ['--target', String(child.pid), '--mount', '--net', 'sh', '-c', script], {
        ...{ env, input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] },
      });
    await eventually(() => inside(template.readyCmd), WITHIN);

    const webhook = { url: 'http://127.0.0.1:9/', secret: '<SIGNING_SECRET>' };
    const identity = { sandbox_id: 'sbx_1', team_id: 'team_1', webhook };
    inside('cat >/root/init.json', JSON.stringify(identity));
    inside(init);
    expect(inside('ls -A /root')).toBe('');
    const socket = 'curl --silent --fail-with-body --unix-socket /run/sandboxd/control.sock';
    const state = inside(`${socket} -H 'X-Control-Scope: read' http://localhost/api/v1/sandbox`);
    expect(JSON.parse(state).data).toMatchObject({ sandbox_id: 'sbx_1', team_id: 'team_1' });

    const script =
      'id -un; cat /run/sandboxd/control.sock /var/lib/sandboxd/outbox.db 2>/dev/null || echo refused';
    const command = JSON.stringify({ command: ['sh', '-c', script] });
    const run = `${socket} -H 'X-Control-Scope: write' -H 'Content-Type: application/json' --data @- 'http://localhost/api/v1/processes?wait_ms=30000'`;
    expect(JSON.parse(inside(run, command)).data).toMatchObject({
      state: 'exited',
      output: { stdout: 'user\nrefused\n' },
    });
  });
});
