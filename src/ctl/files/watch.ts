import type { ErrorCode } from '../../contract/errors.ts';
import { namedMessage } from '../api/named-error.ts';
import type { Context } from '../context.ts';
import { EXIT, type ExitCode, Failure } from '../failure.ts';
import { printable } from '../terminal/printable.ts';
import { type AsUser, sandboxPath } from './sandbox-files.ts';

/** A message of the daemon; what it holds depends on its type. */
interface WatchMessage {
  type: string;
  event?: string;
  path?: string;
  old_path?: string;
  error?: { code: ErrorCode; message: string; details?: unknown };
}

/** Prints the changes in directories of the sandbox until it is interrupted. Contract section 4, `GET /files/watch`. */
export async function watch(
  context: Context,
  paths: readonly string[],
  { recursive, ...as }: AsUser & { recursive: boolean },
  interrupted: AbortSignal,
): Promise<ExitCode> {
  const named = paths.map(sandboxPath);
  const { socket, texts } = await context.sandbox.connect('/api/v1/files/watch', { query: as });
  const close = () => socket.close();
  interrupted.addEventListener('abort', close);
  if (interrupted.aborted) close();
  try {
    for (const path of named) socket.send(JSON.stringify({ action: 'subscribe', path, recursive }));
    // The daemon is told that this client is slow by what it does not read.
    for await (const text of texts) await print(context, text);
  } finally {
    close();
  }
  if (interrupted.aborted) return EXIT.ok;
  throw new Failure(EXIT.unreachable, `the connection to ${context.shown} has ended`);
}

async function print({ out, err, json }: Context, text: string): Promise<void> {
  const message = messageIn(text);
  if (message === null) throw new Failure(EXIT.failed, 'the daemon sent an invalid message');
  if (message.type === 'error') throw failureIn(message);
  if (json) await out.line(text);
  else if (message.type === 'event') await out.line(eventText(message));
  else if (message.type === 'subscribed') await err.line(`watching ${message.path}`);
  else if (message.type === 'overflow') await err.line('too slow: the differences follow');
}

function messageIn(text: string): WatchMessage | null {
  try {
    const message: unknown = JSON.parse(text);
    return typeof message === 'object' ? (message as WatchMessage | null) : null;
  } catch {
    return null;
  }
}

function failureIn({ error }: WatchMessage): Failure {
  const text = error ? namedMessage(error, '') : 'unknown error';
  return new Failure(EXIT.failed, `${text} (${error?.code})`);
}

function eventText({ event = '', path = '', old_path }: WatchMessage): string {
  const shown = old_path === undefined ? path : `${old_path} -> ${path}`;
  return `${String(event).padEnd(6)} ${printable(String(shown))}`;
}
