import type { Readable } from 'node:stream';
import { type ProgramEnd, type ProgramFile, type StartedProgram, startProgram } from './start-program.ts';

/** The administrator's programs too, and messages in English. */
const ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' };
const OUTPUT_MAX_BYTES = 16 * 1024 * 1024;
/** A tool that only asks or sets something takes a moment. */
const TIMEOUT_MS = 10_000;
/** Of a million files that cannot be removed only the first ones are reported. */
const STDERR_MAX_BYTES = 64 * 1024;

/** Options of a tool. */
export interface ToolOptions {
  /** Its input; default: none. */
  stdin?: string;
  /** How long it may take; default: 10 s. */
  timeout_ms?: number;
}

/** A system program that failed. Its message is the program, and the first line that it reported. */
export class ToolError extends Error {
  /** The beginning of its output on stderr. */
  readonly stderr: string;

  constructor(program: string, problem: string, stderr: string) {
    super(`${program}: ${problem}`);
    this.stderr = stderr;
  }
}

/** Runs a system program to its end; resolves with its output on stdout, at most 16 MiB. Rejects with ToolError. */
export async function runTool(
  command: readonly string[],
  { stdin, timeout_ms = TIMEOUT_MS }: ToolOptions = {},
): Promise<string> {
  const input = stdin === undefined ? 'ignore' : 'pipe';
  const { program, problem, said } = await startTool(command, [input, 'pipe', 'pipe'], { timeout_ms });
  const { child } = program;
  let is_too_long = false;
  const output = beginningOf(child.stdout, OUTPUT_MAX_BYTES, () => {
    is_too_long = true;
    child.kill('SIGKILL');
  });
  child.stdin?.on('error', () => {}); // if it does not read its input, its exit status says why
  child.stdin?.end(stdin);
  const why = await problem;
  if (why === null) return output();
  throw new ToolError(command[0] ?? '', is_too_long ? 'its output is longer than 16 MiB' : why, said());
}

/** Runs a system program to its end, however long it takes. Null if it succeeded, otherwise the first line that it reported. */
export async function toolProblem(...command: string[]): Promise<string | null> {
  return (await startTool(command, ['ignore', 'ignore', 'pipe'])).problem;
}

/** A running system program. */
export interface RunningTool {
  program: StartedProgram;
  /** Resolves at its end: null if it succeeded, otherwise the first line that it reported. */
  problem: Promise<string | null>;
  /** The beginning of its output on stderr. */
  said: () => string;
}

/**
 * Starts a system program with these files, the third of which is a pipe. `timeout_ms`: 0 for as long as it takes; `path`:
 * the folders that it is searched in.
 */
export async function startTool(
  command: readonly string[],
  stdio: readonly ProgramFile[],
  { timeout_ms = 0, path = ENVIRONMENT.PATH } = {},
): Promise<RunningTool> {
  const program = await startProgram(command, { env: { ...ENVIRONMENT, PATH: path }, stdio, timeout_ms });
  const said = beginningOf(program.child.stderr, STDERR_MAX_BYTES, () => {});
  const problem = program.ended.then((end) => problemOf(command[0] ?? '', end, said()));
  return { program, problem, said };
}

function problemOf(
  program: string,
  { code, signal, is_late, refusal }: ProgramEnd,
  said: string,
): string | null {
  if (refusal === 'ENOENT') return `${program} is not installed`;
  if (refusal !== null) return `${program} cannot be started: ${refusal}`;
  if (is_late) return `${program} takes too long`;
  if (code === 0) return null;
  return said.trim().split('\n')[0] || `${program} exited with ${code ?? signal}`;
}

/** Reads a stream to its end, and keeps its beginning. `onMore` is called with each piece beyond that. */
function beginningOf(stream: Readable | null, max_bytes: number, onMore: () => void): () => string {
  const pieces: Buffer[] = [];
  let room = max_bytes;
  stream?.on('data', (piece: Buffer) => {
    if (piece.length > room) onMore();
    if (room > 0) pieces.push(piece.subarray(0, room));
    room -= Math.min(room, piece.length);
  });
  return () => Buffer.concat(pieces).toString();
}
