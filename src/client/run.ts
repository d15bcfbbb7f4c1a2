import { SandboxdError } from './error.ts';
import { randomKey } from './http-client.ts';
import type { paths } from './openapi/daemon-api.ts';
import type { InitOf } from './routes.ts';
import type { SandboxRoutes } from './sandbox-routes.ts';
import { joined } from './streams/bytes.ts';
import type { Process } from './streams/process.ts';
import { readOutput, type TakeOutput } from './streams/read-output.ts';
import { sendInput } from './streams/send-input.ts';

type Start = InitOf<paths, '/api/v1/processes', 'post'>['body'];

/** How a command is run to its end. */
export type RunOptions = Pick<Start, 'cwd' | 'env' | 'name' | 'timeout_ms' | 'user'> & {
  /** What it reads; without, its stdin is at its end at once. */
  stdin?: string | Uint8Array<ArrayBuffer>;
  /** Takes each piece of output as it comes. The command is held up until it has resolved, rather than that output is missed. */
  onOutput?: TakeOutput;
  /** Ends the wait with its reason; the command is sent SIGTERM. */
  signal?: AbortSignal;
};

/** A command that has ended, and what it wrote, as UTF-8. */
export interface RunResult {
  /** 128 + the signal's number where a signal ended it; null where nobody knows. */
  exit_code: number | null;
  stdout: string;
  stderr: string;
  /** Whether it wrote more than what is here, which is the end of it. */
  stdout_truncated: boolean;
  stderr_truncated: boolean;
  process: Process;
}

/** The most of each stream that is kept: twice this is what a hostile sandbox can make its caller hold. */
const KEPT_MAX_BYTES = 16 * 1024 * 1024;

/** Runs a command in a sandbox to its end. */
export async function runIn(
  routes: SandboxRoutes,
  command: string | readonly string[],
  { stdin, onOutput, signal, ...start }: RunOptions,
): Promise<RunResult> {
  const process_id = `proc_${randomKey()}`;
  const path = { process_id };
  const what = typeof command === 'string' ? { shell: command } : { command: [...command] };
  // Under an id of its own, a start whose answer is lost can be repeated.
  const body = { ...start, ...what, process_id, stdin: stdin === undefined ? 'ignore' : 'pipe' };
  await routes.data('POST', '/processes', { body, query: { lossless: true }, signal });
  const ends = { stdout: new End(), stderr: new End() };
  const take: TakeOutput = async (event) => {
    if (event.type === 'gone') ends[event.stream].is_truncated = true;
    else ends[event.stream].add(event.bytes);
    await onOutput?.(event);
  };
  try {
    const input = typeof stdin === 'string' ? new TextEncoder().encode(stdin) : stdin;
    const [process] = await Promise.all([
      readOutput(routes, process_id, take, { lossless: true, signal }),
      input && sendInput(routes, process_id, [input], { signal }).catch(unlessConflict),
    ]);
    const { stdout, stderr } = ends;
    return {
      exit_code: process.exit_code,
      stdout: stdout.text(),
      stderr: stderr.text(),
      stdout_truncated: stdout.is_truncated,
      stderr_truncated: stderr.is_truncated,
      process,
    };
  } catch (error) {
    // Nobody waits for it any more.
    const stop = { path, body: { signal: 'SIGTERM' } };
    await routes.data('POST', '/processes/{process_id}/signal', stop).catch(() => {});
    throw error;
  }
}

/** A process that has ended, or closed its stdin, need not have read all of it. */
function unlessConflict(error: unknown): void {
  if (!(error instanceof SandboxdError && error.code === 'conflict')) throw error;
}

/** The end of a stream. */
class End {
  is_truncated = false;
  readonly #pieces: Uint8Array[] = [];
  #bytes = 0;

  add(bytes: Uint8Array): void {
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
    for (let first = this.#pieces[0]; first && this.#bytes > KEPT_MAX_BYTES; first = this.#pieces[0]) {
      const surplus = Math.min(first.length, this.#bytes - KEPT_MAX_BYTES);
      this.#bytes -= surplus;
      this.is_truncated = true;
      if (surplus === first.length) this.#pieces.shift();
      else this.#pieces[0] = first.subarray(surplus);
    }
  }

  text(): string {
    return new TextDecoder().decode(joined(this.#pieces));
  }
}
