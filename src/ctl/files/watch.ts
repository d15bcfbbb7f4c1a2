import { once } from 'node:events';
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
  { client, out, err, json }: Context,
  paths: readonly string[],
  { recursive, ...as }: AsUser & { recursive: boolean },
  interrupted: AbortSignal,
): Promise<ExitCode> {
  const named = paths.map(sandboxPath);
  const socket = await client.connect('/files/watch', { ...as });
  interrupted.addEventListener('abort', () => socket.close());
  let failure: Failure | null = null;
  let printed = Promise.resolve();
  socket.on('message', (data) => {
    const text = String(data);
    const message = messageIn(text);
    failure ??= failureIn(message);
    if (message === null || failure) return socket.close();
    // The daemon is told that this client is slow by what it does not read.
    socket.pause();
    printed = printed
      .then(async () => {
        if (json) await out.line(text);
        else if (message.type === 'event') await out.line(eventText(message));
        else if (message.type === 'subscribed') await err.line(`watching ${message.path}`);
        else if (message.type === 'overflow') await err.line('too slow: the differences follow');
      })
      .finally(() => socket.resume())
      .catch(() => socket.close());
  });
  const closed = once(socket, 'close');
  for (const path of named) socket.send(JSON.stringify({ action: 'subscribe', path, recursive }));
  socket.resume();
  await closed;
  await printed;
  if (failure) throw failure;
  if (!interrupted.aborted)
    throw new Failure(EXIT.unreachable, `the connection to ${client.shown} has ended`);
  return EXIT.ok;
}

function messageIn(text: string): WatchMessage | null {
  try {
    const message: unknown = JSON.parse(text);
    return typeof message === 'object' ? (message as WatchMessage | null) : null;
  } catch {
    return null;
  }
}

function failureIn(message: WatchMessage | null): Failure | null {
  if (message === null) return new Failure(EXIT.failed, 'the daemon sent an invalid message');
  if (message.type !== 'error') return null;
  const { error } = message;
  const text = error ? namedMessage(error, '') : 'unknown error';
  return new Failure(EXIT.failed, `${text} (${error?.code})`);
}

function eventText({ event = '', path = '', old_path }: WatchMessage): string {
  const shown = old_path === undefined ? path : `${old_path} -> ${path}`;
  return `${String(event).padEnd(6)} ${printable(String(shown))}`;
}
