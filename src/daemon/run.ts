import { accessSync, constants, readFileSync } from 'node:fs';
import { systemClock } from '../base/clock.ts';
import { settleAfterStart } from '../base/engine/heap.ts';
import { fileSystemOf } from '../base/linux/filesystem.ts';
import { raisePriority } from '../base/linux/priority.ts';
import { createLog, type Log } from '../base/log.ts';
import { StartError } from '../contract/errors.ts';
import { type DaemonConfig, optionsWithoutEffect } from './config.ts';
import { Daemon } from './daemon.ts';

const CAP_SETGID = 1n << 6n;

/**
 * Runs a daemon until it ends and resolves with the exit code. `environment` is the plain environment of supervised
 * processes: the daemon's own without its secrets. Throws StartError if the start fails. Source: contract section 4,
 * below the options.
 */
export async function runDaemon(config: DaemonConfig, environment: Record<string, string>): Promise<number> {
  const log = createLog(config.log_level);
  const daemon = new Daemon({
    config,
    log,
    clock: systemClock,
    environment,
    stdout: process.stdout,
    createApp: async (...given) => (await import('./api/app.ts')).createApp(...given),
  });
  const ended = endOf(daemon, log);
  raisePriority();
  try {
    await daemon.start();
  } catch (error) {
    if (daemon.state === 'stopping') return ended();
    await daemon.abandon();
    if (error instanceof StartError) throw error;
    throw new StartError((error as Error).message, 1, error);
  }
  settleAfterStart(systemClock);
  warnOfLimits(config, log);
  return ended();
}

/** Installs the handlers that end a daemon, before its start; returns a function that waits for the end. */
function endOf(daemon: Daemon, log: Log): () => Promise<number> {
  const { promise: fault, resolve: fail } = Promise.withResolvers<number>();
  const { promise: stopped, resolve: stop } = Promise.withResolvers<number>();
  let signalled: NodeJS.Signals | null = null;
  const shutDown = (signal: 'SIGTERM' | 'SIGINT') => {
    signalled = signal;
    log.info({ signal }, 'shutting down');
    void daemon.stop('signal', signal);
  };
  process.on('SIGTERM', (signal) => {
    if (daemon.state !== 'stopping') return shutDown('SIGTERM');
    log.info({ signal }, 'stopping immediately');
    void daemon.hurry();
  });
  process.on('SIGINT', () => {
    if (daemon.state === 'stopping') void daemon.hurry();
    // A main command decides itself what an interrupt means.
    else if (daemon.forward('SIGINT')) signalled = 'SIGINT';
    else shutDown('SIGINT');
  });
  process.on('SIGHUP', () => daemon.forward('SIGHUP'));
  // A closed reader of the output must not end the daemon.
  process.stdout.on('error', () => {});
  process.on('uncaughtException', (error) => {
    log.fatal({ reason: error.message, stack: error.stack }, 'unexpected error');
    fail(1);
  });
  daemon.onFault = () => fail(1);
  daemon.onStopped = () => stop(0);
  return () => Promise.race([fault, endWithMain(daemon, stopped, () => signalled)]);
}

/** With a main command, the daemon ends with it and with its exit code, unless `--keep-alive` is set. */
async function endWithMain(
  daemon: Daemon,
  stopped: Promise<number>,
  signalled: () => NodeJS.Signals | null,
): Promise<number> {
  if (!daemon.main) return stopped;
  const exit_code = await daemon.main.ended();
  if (daemon.config.keep_alive && daemon.state !== 'stopping') return stopped;
  await daemon.stop(signalled() ? 'signal' : 'main_process_exited', signalled());
  return exit_code;
}

/** Logs what the daemon cannot promise where it runs, and options without effect. */
function warnOfLimits(config: DaemonConfig, log: Log): void {
  for (const line of optionsWithoutEffect(config)) log.warn(line);
  if (isVolatile(config.state_dir)) {
    const { state_dir } = config;
    log.warn({ state_dir }, 'the state directory is in memory: a reboot loses acknowledged events');
  }
  if ((config.webhook_secret !== '' || config.await_init) && !isMemoryPrivate()) {
    log.warn(
      'supervised processes can read the webhook secret from memory: use the image tree, --process-user, or run as root',
    );
  }
  if (process.pid === 1) {
    log.warn('running as PID 1: orphaned processes are not reaped; run an init such as tini as PID 1');
  }
}

/** Whether a directory is in memory and lost on reboot; false if it cannot be examined. */
export function isVolatile(directory: string): boolean {
  try {
    return fileSystemOf(directory).kind === 'memory';
  } catch {
    return false; // Using the directory reports the error.
  }
}

/**
 * Whether the kernel hides this process's memory from other processes of its user. It does if the process may change
 * its group, which `takeSecrets` does, or if `binary`, the program's file, can be executed but not read.
 */
export function isMemoryPrivate(binary = process.execPath): boolean {
  try {
    accessSync(binary, constants.R_OK);
  } catch {
    return true;
  }
  try {
    const [, set = '0'] = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'latin1')) ?? [];
    return (BigInt(`0x${set}`) & CAP_SETGID) !== 0n;
  } catch {
    return process.getuid?.() === 0;
  }
}
