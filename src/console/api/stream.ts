import { createParser } from 'eventsource-parser';
import { sleep } from '../base/clock.ts';
import { isAbort, type Query, send } from './http.ts';
import { type Problem, problemOf, RequestProblem } from './problem.ts';

/** A server-sent event: `data` is its text, `id` the last one sent. */
export interface StreamEvent {
  id: string;
  event: string;
  data: string;
}

/** What a stream tells beside its events. */
export interface StreamState {
  state: 'connecting' | 'live' | 'waiting' | 'ended';
  problem: Problem | null;
}

/** What follows a stream. */
export interface Follower {
  /** The events of one piece of the stream, at least one. False ends the stream. */
  onEvents(events: StreamEvent[]): boolean | undefined;
  onState(state: StreamState): void;
}

const FIRST_MS = 500;
const MOST_MS = 15_000;
const EVENT_MAX_CHARACTERS = 16 * 1024 * 1024;

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

async function* eventsOf({ body }: Response): AsyncGenerator<StreamEvent[]> {
  if (body === null) return;
  const complete: StreamEvent[] = [];
  let last_id = '';
  const parser = createParser({
    maxBufferSize: EVENT_MAX_CHARACTERS,
    onEvent: ({ id = last_id, event = 'message', data }) => {
      last_id = id;
      complete.push({ id, event, data });
    },
    onError: ({ type, message }) => {
      if (type === 'max-buffer-size-exceeded') throw new Error(message);
    },
  });
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(value);
      if (complete.length > 0) yield complete.splice(0);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
