import { fstatSync } from 'node:fs';
import type { SandboxdError } from '../../client/error.ts';
import type { Process } from '../../client/streams/process.ts';
import type { ProcessRequest } from '../../contract/processes.ts';
import { following, unlessInterrupted } from '../api/following.ts';
import type { Context } from '../context.ts';
import { EXIT, Failure, RUN_FAILED } from '../failure.ts';
import { followOutput, tellLost } from '../logs.ts';
import { requestSignal } from '../signal.ts';
import { OutputClosed } from '../terminal/output.ts';
import { OutputSink } from '../terminal/output-sink.ts';
import { duration } from '../terminal/quantity.ts';
import { attach, type Keyboard, terminalSize } from './attach.ts';
import { SignalForwarding } from './forward-signals.ts';
import { sendStdin } from './send-stdin.ts';

/** How to run a process. */
export interface RunOptions {
  request: ProcessRequest;
  /** Whether stdin is forwarded. */
  interactive: boolean;
  /** Whether the process gets a terminal. */
  terminal: boolean;
  stdin: NonNullable<Keyboard['stdin']>;
  screen: Keyboard['screen'];
}

/**
 * Runs a process as if it ran here: this program has its output, forwards signals to it and returns its exit code, 128 +
 * the signal's number if a signal ended it. Contract section 4, `POST /processes`.
 */
export async function runProcess(context: Context, options: RunOptions): Promise<number> {
  const signals = new SignalForwarding(context);
  try {
    const { process_id } = await start(context, options);
    signals.to(process_id);
    const process = await connect(context, process_id, options, signals.failed);
    if (!process) throw signals.failed.reason;
    if (context.json) await context.out.line(JSON.stringify({ type: 'exit', process }));
    else if (process.timed_out) await context.err.line(timeoutText(process, options.request.timeout_ms));
    if (Number.isInteger(process.exit_code)) return (process.exit_code as number) & 0xff;
    throw new Failure(EXIT.failed, `it is unknown how ${process_id} ended`);
  } finally {
    signals.end();
  }
}

function timeoutText({ process_id }: Process, timeout_ms = 0): string {
  return `sandboxctl: ${process_id} was ended: it ran longer than ${duration(timeout_ms)} (--timeout)`;
}

function start({ sandbox }: Context, { request, interactive, terminal, screen }: RunOptions) {
  const body: ProcessRequest = {
    ...request,
    ...(terminal ? { pty: terminalSize(screen) } : { stdin: interactive ? 'pipe' : 'ignore' }),
  };
  return sandbox.POST('/api/v1/processes', { query: { lossless: true }, body });
}

async function connect(
  context: Context,
  process_id: string,
  { interactive, terminal, stdin, screen }: RunOptions,
  failed: AbortSignal,
): Promise<Process | null> {
  const ended = new AbortController();
  try {
    if (terminal) {
      const keyboard = { stdin: interactive || stdin.isTTY ? stdin : null, screen };
      return await attach(context, process_id, keyboard, failed);
    }
    const stop = AbortSignal.any([failed, ended.signal]);
    const sent = interactive ? sendStdin(context, process_id, stdin, stop) : Promise.resolve();
    const followed = follow(context, process_id, stop);
    return await Promise.race([followed, sent.then(() => followed)]);
  } catch (error) {
    // Ends like any program in a pipe whose reader has closed it.
    if (error instanceof OutputClosed) await requestSignal(context, process_id, 'SIGTERM').catch(() => {});
    throw error;
  } finally {
    ended.abort();
  }
}

/** Where the order of stdout and stderr is seen, both come over one connection, in the order in which they were read. */
function follow(context: Context, process_id: string, stop: AbortSignal): Promise<Process | null> {
  if (!context.json && !isSamePlace()) {
    const sink = new OutputSink(context, true);
    const options = { lossless: true, ...following(stop, () => tellLost(context)) };
    return unlessInterrupted(stop, () =>
      context.sandbox.readOutput(process_id, (event) => sink.take(event), options),
    );
  }
  return followOutput(
    context,
    process_id,
    { follow: true, lossless: true, is_known: true, is_raw: true },
    stop,
  );
}

/**
 * The exit code of a `run` that failed: 127 where its command is not found, 126 where it cannot be started otherwise, and
 * 125 for everything else, as of `docker run`. Contract section 4, "`sandboxctl`".
 */
export function runExitCode(failure: Failure): number {
  const { details } = (failure.cause ?? {}) as Partial<SandboxdError>;
  const code = (details as { exit_code?: unknown } | null | undefined)?.exit_code;
  return code === 126 || code === 127 ? code : RUN_FAILED;
}

const STDOUT = 1;
const STDERR = 2;

/** Whether this program's stdout and stderr lead to the same place, such as a terminal, where their order is seen. */
function isSamePlace(): boolean {
  const [out, err] = [fstatSync(STDOUT), fstatSync(STDERR)];
  return out.dev === err.dev && out.ino === err.ino;
}
