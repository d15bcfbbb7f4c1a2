import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { launchDaemon, revokeControl } from '../../../src/runtime/local/launch.ts';
import { SandboxFiles } from '../../../src/runtime/local/sandbox-files.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** Binds the control socket, listens once there is a file `go`, and serves until it is killed. */
const SLOW_DAEMON = `use Socket;
  socket(my $server, PF_UNIX, SOCK_STREAM, 0) or die;
  bind($server, sockaddr_un("run/control.sock")) or die;
  select(undef, undef, undef, 0.005) until -e "go";
  listen($server, 5) or die;
  chmod 0600, "run/control.sock";
  sleep 1000;`;

function files(): SandboxFiles {
  const data_dir = scratchFolder();
  const data_dir_fd = openSync(data_dir, 'r');
  onTestFinished(() => closeSync(data_dir_fd));
  mkdirSync(join(data_dir, 'sbx-1'));
  return new SandboxFiles(data_dir, data_dir_fd, 'sbx-1');
}

function command(sandbox: SandboxFiles, program: string) {
  const argv: [string, ...string[]] = ['perl', '-e', program];
  return {
    argv,
    program_version: '1',
    cwd: sandbox.directory,
    env: {},
    bubblewrap_args: null,
    seccomp_filter: null,
  };
}

it('a launch waits until the daemon listens, not only until its socket has a name', async () => {
  const sandbox = files();
  const clock = new ManualClock();
  let is_launched = false;
  const launching = launchDaemon(clock, sandbox, command(sandbox, SLOW_DAEMON), [], null).then((daemon) => {
    is_launched = true;
    onTestFinished(() => void process.kill(daemon.pid, 'SIGKILL'));
    return daemon;
  });
  await eventually(() => expect(existsSync(join(sandbox.run, 'control.sock'))).toBe(true), {
    timeout: 60_000,
  });
  await clock.advance(100);
  expect([is_launched, existsSync(sandbox.control_socket)]).toEqual([false, false]);
  writeFileSync(join(sandbox.directory, 'go'), '');
  await eventually(
    async () => {
      await clock.advance(5);
      expect(is_launched).toBe(true);
    },
    { timeout: 60_000 },
  );
  expect((await launching).pid).toBeGreaterThan(0);
  const connection = connect(sandbox.socket_address);
  await once(connection, 'connect');
  connection.destroy();
  revokeControl(sandbox);
  expect(existsSync(join(sandbox.run, 'control.sock'))).toBe(false);
  expect(existsSync(sandbox.control_socket)).toBe(true);
});

it('a launch fails with the last line of the log if the daemon ends instead', async () => {
  const sandbox = files();
  const failing = launchDaemon(
    systemClock,
    sandbox,
    command(sandbox, 'warn "one\\n"; die "no port is free\\n"'),
    [],
    null,
  );
  await expect(failing).rejects.toMatchObject({
    code: 'internal_error',
    message: expect.stringMatching(/did not start: it exited with \d+\. no port is free$/),
  });
});
