import type { ServerSentEvent } from '../../contract/server-sent-events.ts';
import type { Answer } from '../connector.ts';
import { SandboxdError } from '../error.ts';
import { pause } from '../pause.ts';
import { DEFAULT_RETRY, delayBeforeRetry } from '../retry.ts';
import { badFrame } from './bytes.ts';
import { serverEvents } from './server-events.ts';

/** What every stream that is followed takes. */
export interface FollowStreamOptions {
  signal?: AbortSignal;
  /** Called with true when the stream is open, and with false when it is lost and will be opened again. */
  onConnection?: (is_connected: boolean) => void;
  /** The wait before each new connection, in ms. Without: from 250 ms, doubling up to 10 s, and half of it random. */
  reconnect_ms?: number;
}

/** How a stream is opened, once and again. */
export interface Followed {
  /** Opens the stream after the event of this id; null is the beginning that the caller chose. */
  open(last_id: string | null): Promise<Answer>;
  signal: AbortSignal | undefined;
  onConnection?: FollowStreamOptions['onConnection'] | undefined;
  reconnect_ms?: number | undefined;
  /** False: the end of the stream is the end. */
  follow?: boolean;
  /** Whether the server is known to have what is followed, so that even the first failure may pass. */
  is_known?: boolean | undefined;
}

const FIRST_WAIT_MS = 250;
/** What the header that goes on after an event can hold; the programs' ids are far shorter. */
const EVENT_ID = /^[\x21-\x7e]{0,1000}$/;

/**
 * The events of a stream over as many connections as it takes: where one is lost, the next begins after the last event.
 * It ends with its caller, with `signal` (whose reason is thrown), or with an error that will not pass.
 */
export async function* followEvents({
  open,
  signal,
  onConnection,
  reconnect_ms,
  follow = true,
  is_known = false,
}: Followed): AsyncGenerator<ServerSentEvent> {
  let last_id: string | null = null;
  let failures = 0;
  let is_open = false;
  for (;;) {
    try {
      const answer = await open(last_id);
      is_known = true;
      is_open = true;
      onConnection?.(true);
      for await (const event of serverEvents(answer)) {
        failures = 0;
        if (!EVENT_ID.test(event.id)) throw badFrame();
        last_id = event.id || last_id;
        yield event;
      }
      signal?.throwIfAborted();
      if (!follow) return;
    } catch (error) {
      signal?.throwIfAborted();
      if (!is_known || !mayPass(error)) throw error;
    }
    failures += 1;
    if (is_open) onConnection?.(false);
    is_open = false;
    await pause(reconnect_ms ?? reconnectDelayMs(failures), signal);
  }
}

/** The wait after so many failures in a row, in ms. */
export function reconnectDelayMs(failures: number): number {
  const error = new SandboxdError({ code: 'unreachable', message: '', status: 0 });
  const policy = { ...DEFAULT_RETRY, retries: Number.POSITIVE_INFINITY, backoff_ms: FIRST_WAIT_MS };
  return delayBeforeRetry({ error, attempt: failures, has_own_key: false }, policy, Math.random()) ?? 0;
}

/** The states of a sandbox that it never leaves for one in which it answers. */
const LAST_STATES = new Set(['terminating', 'failed', 'deleted']);

/** Whether the same request may be answered later: nobody answered, or not now. A paused sandbox is a conflict. */
export function mayPass(error: unknown): error is SandboxdError {
  if (!(error instanceof SandboxdError)) return false;
  const { code, status, details } = error;
  if (code === 'conflict') return !LAST_STATES.has(String((details as { status?: unknown } | null)?.status));
  return code === 'unreachable' || status === 429 || status >= 502;
}
