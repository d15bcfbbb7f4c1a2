import type { ReadStream, WriteStream } from 'node:tty';
import type { SandboxdError } from '../../client/error.ts';
import type { Attachment } from '../../client/streams/attachment.ts';
import type { Process } from '../../client/streams/process.ts';
import type { PtySize } from '../../contract/processes.ts';
import { RECONNECT_MS, unlessInterrupted } from '../api/following.ts';
import type { Context } from '../context.ts';
import { pause } from '../pause.ts';
import { OutputSink } from '../terminal/output-sink.ts';

/** Ctrl-D: the end of input for programs that read a terminal in raw mode, where the daemon knows of no end. */
const END_OF_FILE_KEY = new Uint8Array([0x04]);
/** Input that is not sent yet at which no more of it is read, and how often that is looked at. */
const UNSENT_MAX_CHARACTERS = 1024 * 1024;
const UNSENT_CHECK_MS = 20;

/** The user's side: the input, null where there is none, and the terminal whose size is used. */
export interface Keyboard {
  stdin: ReadStream | null;
  screen: WriteStream;
}

/** The size of a terminal; 80 × 24 where there is none. */
export function terminalSize({ columns, rows }: WriteStream): PtySize {
  return { cols: columns || 80, rows: rows || 24 };
}

/**
 * Connects this terminal to that of a process until the process has ended, or until `interrupted`, when it resolves with
 * null. A lost connection is reopened where it ended. Contract section 4, `GET /processes/{id}/attach`.
 */
export async function attach(
  context: Context,
  process_id: string,
  { stdin, screen }: Keyboard,
  interrupted: AbortSignal,
): Promise<Process | null> {
  const options = { lossless: true, signal: interrupted, reconnect_ms: RECONNECT_MS };
  const terminal = context.sandbox.attach(process_id, options);
  const ended = new AbortController();
  const resize = () => {
    const { cols, rows } = terminalSize(screen);
    terminal.resize(cols, rows);
  };
  stdin?.setRawMode?.(true);
  screen.on('resize', resize);
  resize();
  try {
    const typed = stdin ? type(stdin, terminal, ended.signal) : null;
    const shown = unlessInterrupted(interrupted, () => show(context, terminal));
    return await Promise.race([shown, typed?.then(() => shown) ?? shown]);
  } finally {
    ended.abort();
    terminal.close();
    screen.off('resize', resize);
    stdin?.setRawMode?.(false);
    stdin?.destroy();
  }
}

async function show(context: Context, terminal: Attachment): Promise<Process | null> {
  const sink = new OutputSink(context, true);
  for await (const event of terminal) {
    if (event.type === 'exit') return event.process;
    if (event.type === 'output' || event.type === 'gone') await sink.take(event);
    if (event.type === 'error' && isWithoutEnd(event.error)) terminal.write(END_OF_FILE_KEY);
  }
  return null;
}

/** Types what comes from a keyboard, and its end, as fast as it is sent. */
async function type(stdin: ReadStream, terminal: Attachment, ended: AbortSignal): Promise<void> {
  try {
    for await (const data of stdin) {
      while (terminal.unsent_characters > UNSENT_MAX_CHARACTERS && !ended.aborted)
        await pause(UNSENT_CHECK_MS, ended);
      terminal.write(data);
    }
    terminal.end();
  } catch (error) {
    if (!ended.aborted) throw error;
  }
}

/** Whether this says that the end of input could not be told: in raw mode, or by a daemon that knows of no `end`. */
function isWithoutEnd({ details }: SandboxdError): boolean {
  return (details as { field?: unknown } | undefined)?.field === 'end';
}
