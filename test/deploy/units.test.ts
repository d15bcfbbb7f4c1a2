import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Machine, whyNoMachine } from '../support/deploy/machine.ts';
import { eventually } from '../support/eventually.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 300_000 });

const WITHIN = { timeout: 60_000, interval: 100 };
const SECRET = '<SIGNING_SECRET>';
const why_not = whyNoMachine();
if (why_not !== null) console.log(`skipped, the units of systemd booted: ${why_not}`);

/** A receiver that answers 401 to what the secret did not sign. */
const RECEIVER = `[Service]
ExecStart=/usr/local/bin/sandboxctl listen --port 8787 --secret-file /etc/receiver-secret
[Install]
WantedBy=multi-user.target
`;
const DAEMON = 'sandboxd.service';
const MANAGER = 'sandbox-manager-records.service';

describe.skipIf(why_not !== null)('on a machine that systemd has booted', () => {
  let machine: Machine;

  beforeAll(async () => {
    machine = await Machine.make();
    machine.write('etc/receiver-secret', SECRET, 0o600);
    machine.write('etc/sandboxd/secret', SECRET, 0o600);
    machine.write(
      'etc/sandboxd/environment',
      'SANDBOXD_WEBHOOK_URL=http://127.0.0.1:8787/\nSANDBOXD_SANDBOX_ID=sbx_1\nSANDBOXD_SHUTDOWN_GRACE_MS=500\n',
      0o600,
    );
    machine.write('etc/sandbox-manager/config.yaml', 'listen: 127.0.0.1:8080\n', 0o600);
    machine.install('receiver.service', RECEIVER);
    machine.install(DAEMON);
    machine.install(MANAGER);
    await machine.boot();
  });

  afterAll(() => machine?.remove());

  const request = (path: string, options = '') =>
    machine.run(
      `curl --silent --show-error --fail-with-body -H "Authorization: Bearer $(cat /var/lib/sandboxd/control-token)" ${options} http://127.0.0.1:49983${path}`,
    );
  /** What the API answers; null for an answer without a body. */
  const data = async (path: string, options = '') => {
    const { stdout } = await request(`/api/v1${path}`, options);
    return stdout === '' ? null : JSON.parse(stdout).data;
  };
  const post = (path: string, body: object) =>
    data(path, `-H 'Content-Type: application/json' --data '${JSON.stringify(body)}'`);
  const isReady = () => eventually(() => request('/readyz'), WITHIN);
  const mainPid = async (unit: string) => Number(await machine.show(unit, 'MainPID'));
  /** Ends the main process as a crash would; resolves with the pid of the next one. */
  const crash = async (unit: string) => {
    const pid = await mainPid(unit);
    await machine.run(`kill -KILL ${pid}`);
    return eventually(async () => {
      const next = await mainPid(unit);
      expect(next).not.toBe(0);
      expect(next).not.toBe(pid);
      return next;
    }, WITHIN);
  };
  const publishes = async (step: number) => {
    const { event_id } = await post('/webhook/publish', { payload: { step } });
    await eventually(async () => {
      expect(await data(`/webhook/deliveries/${event_id}`)).toMatchObject({ state: 'delivered' });
    }, WITHIN);
  };

  it('both programs are active, as users without rights, and keep their secrets in files', async () => {
    await isReady();
    for (const unit of [DAEMON, MANAGER]) {
      expect(await machine.show(unit, 'ActiveState')).toBe('active');
      const pid = await mainPid(unit);
      const { stdout } = await machine.run(`cat /proc/${pid}/status; tr '\\0' '\\n' </proc/${pid}/cmdline`);
      expect(stdout).toMatch(/^Uid:\t(?!0\t)/m);
      expect(stdout).toMatch(/^CapBnd:\t0+$/m);
      expect(stdout).toMatch(/^NoNewPrivs:\t1$/m);
      expect(stdout).toMatch(/^Seccomp:\t2$/m);
      expect(stdout).not.toContain(SECRET);
    }
    // The end of one process for want of memory must not end the service.
    expect(await machine.show(DAEMON, 'OOMPolicy')).toBe('continue');
    const { stdout } = await machine.run('systemctl list-units --failed --plain --no-legend');
    expect(stdout).not.toMatch(/sandbox|receiver/);
  });

  it('an event that the daemon signs with the secret of the credential is accepted', () => publishes(1));

  it('what the daemon runs survives its crash, with its files, and the daemon takes it over', async () => {
    const script =
      'echo kept >/tmp/kept; echo kept >/dev/shm/kept; trap "cat /tmp/kept /dev/shm/kept; exit" TERM; while :; do sleep 0.1; done';
    const { process_id, pid } = await post('/processes', { command: ['sh', '-c', script] });
    const sizes = async () => {
      for (const path of ['/tmp/kept', '/dev/shm/kept'])
        expect(await data(`/files/stat?path=${path}`)).toMatchObject({ size: 5 });
    };
    await eventually(sizes, WITHIN);
    await crash(DAEMON);
    await isReady();
    expect(await data(`/processes/${process_id}`)).toMatchObject({ state: 'running', pid });
    // The next daemon sees the files that the process sees.
    await sizes();
    await post(`/processes/${process_id}/signal`, { signal: 'SIGTERM' });
    await eventually(async () => {
      expect(await data(`/processes/${process_id}`)).toMatchObject({ state: 'exited' });
    }, WITHIN);
    expect((await request(`/api/v1/processes/${process_id}/output`)).stdout).toContain('kept\\nkept');
    await publishes(2);
  });

  it('a stop ends what the daemon runs, delivers the last event and leaves nothing', async () => {
    const { pid } = await post('/processes', { command: ['sleep', 'infinity'] });
    await machine.run(`systemctl stop ${DAEMON}`);
    expect(await machine.show(DAEMON, 'ActiveState')).toBe('inactive');
    expect(await machine.show(DAEMON, 'Result')).toBe('success');
    const { stdout } = await machine.run(
      `test -e /proc/${pid} && echo left; journalctl --unit receiver --output cat`,
    );
    expect(stdout).not.toMatch(/^left$/m);
    expect(stdout).toContain('sandbox.killed');
  });

  it('the manager answers, is started anew after a crash, and is stopped', async () => {
    const answers = () =>
      eventually(() => machine.run('curl --silent --show-error --fail http://127.0.0.1:8080/readyz'), WITHIN);
    await answers();
    await crash(MANAGER);
    await answers();
    await machine.run(`systemctl stop ${MANAGER}`);
    expect(await machine.show(MANAGER, 'Result')).toBe('success');
  });
});
