import { eventReader, type ServerSentEvent } from '../../contract/server-sent-events.ts';
import { sleep } from '../base/clock.ts';
import { isAbort, type Query, send } from './http.ts';
import { type Problem, problemOf, RequestProblem } from './problem.ts';

/** What a stream tells beside its events. */
export interface StreamState {
  state: 'connecting' | 'live' | 'waiting' | 'ended';
  problem: Problem | null;
}

/** What follows a stream. */
export interface Follower {
  /** The events of one piece of the stream, at least one. False ends the stream. */
  onEvents(events: ServerSentEvent[]): boolean | undefined;
  onState(state: StreamState): void;
}

const FIRST_MS = 500;
const MOST_MS = 15_000;

/**
 * Follows a stream of server-sent events until `signal` is aborted: a broken one is opened again where it ended. An answer
 * that asking again does not change ends it.
 */
export async function follow(
  path: string,
  query: Query,
  from: string | null,
  follower: Follower,
  signal: AbortSignal,
): Promise<void> {
  let last_id = from;
  let wait_ms = FIRST_MS;
  while (!signal.aborted) {
    follower.onState({ state: 'connecting', problem: null });
    let problem: Problem | null = null;
    try {
      const headers = {
        accept: 'text/event-stream',
        ...(last_id === null ? {} : { 'last-event-id': last_id }),
      };
      const response = await send('GET', path, { query, headers, signal });
      follower.onState({ state: 'live', problem: null });
      for await (const events of eventsOf(response)) {
        wait_ms = FIRST_MS;
        last_id = events.at(-1)?.id || last_id;
        if (follower.onEvents(events) === false) return follower.onState({ state: 'ended', problem: null });
      }
    } catch (error) {
      if (isAbort(error) || signal.aborted) return;
      problem = problemOf(error);
      if (isFinal(error)) return follower.onState({ state: 'ended', problem });
    }
    follower.onState({ state: 'waiting', problem });
    await sleep(wait_ms, signal);
    wait_ms = Math.min(wait_ms * 2, MOST_MS);
  }
}

/** Whether asking again would be answered the same. */
function isFinal(error: unknown): boolean {
  const { status } = error instanceof RequestProblem ? error : { status: 0 };
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

async function* eventsOf({ body }: Response): AsyncGenerator<ServerSentEvent[]> {
  if (body === null) return;
  const read = eventReader((message) => new Error(message));
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = read(value);
      if (events.length > 0) yield events;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
