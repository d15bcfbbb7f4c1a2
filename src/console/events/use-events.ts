import { useEffect, useRef, useState } from 'preact/hooks';
import { type ReadStream, type StreamState, useStream } from '../api/follow.ts';
import { useDrawing } from '../base/use-drawing.ts';
import { type EventLine, lineOf, withLines } from './log.ts';

/** An event as a stream gives it: `key` tells it apart where its body does not. */
export interface Streamed {
  key: string;
  event_type: string;
  body: string;
}

/** A stream of events, from the oldest that is kept. */
export interface EventSource {
  key: string;
  open(...args: Parameters<ReadStream>): AsyncIterable<Streamed>;
}

/** What follows a stream of events shows. */
export interface FollowedEvents {
  lines: readonly EventLine[];
  state: StreamState;
  is_paused: boolean;
  setPaused(is_paused: boolean): void;
  clear(): void;
}

/**
 * Follows a stream of events from its oldest record. What comes is drawn a few times a second, however much it is; while
 * paused it is kept and not drawn.
 */
export function useEvents(source: EventSource): FollowedEvents {
  const [lines, setLines] = useState<readonly EventLine[]>([]);
  const [is_paused, setPaused] = useState(false);
  const waiting = useRef<EventLine[]>([]);
  const paused = useRef(is_paused);
  paused.current = is_paused;
  const drawing = useDrawing(() => {
    const newer = waiting.current;
    if (newer.length === 0 || paused.current) return;
    waiting.current = [];
    setLines((before) => withLines(before, newer));
  });

  const state = useStream(source.key, async (signal, onConnection) => {
    setLines([]);
    waiting.current = [];
    for await (const { key, event_type, body } of source.open(signal, onConnection)) {
      if (signal.aborted) return;
      waiting.current.push(lineOf(body, event_type, key));
      if (waiting.current.length >= WAITING_MAX) waiting.current = withLines([], waiting.current);
      drawing.ask();
    }
  });
  useEffect(() => {
    if (!is_paused) drawing.ask();
  }, [is_paused, drawing]);

  return { lines, state, is_paused, setPaused, clear: () => setLines([]) };
}

/** While nothing is drawn, as in a hidden tab, what waits is cut to what is kept. */
const WAITING_MAX = 40_000;
