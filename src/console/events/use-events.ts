import { useEffect, useRef, useState } from 'preact/hooks';
import { follow, type StreamState } from '../api/stream.ts';
import { type EventLine, lineOf, withLines } from './log.ts';

/** What follows a stream of events shows. */
export interface FollowedEvents {
  lines: readonly EventLine[];
  state: StreamState;
  is_paused: boolean;
  setPaused(is_paused: boolean): void;
  clear(): void;
}

/**
 * Follows a stream of events from its oldest record. What comes is drawn once per frame, however much it is; while paused it
 * is kept and not drawn.
 */
export function useEvents(path: string): FollowedEvents {
  const [lines, setLines] = useState<readonly EventLine[]>([]);
  const [state, setState] = useState<StreamState>({ state: 'connecting', problem: null });
  const [is_paused, setPaused] = useState(false);
  const waiting = useRef<EventLine[]>([]);
  const paused = useRef(is_paused);
  paused.current = is_paused;
  const draw = useRef(() => {});

  useEffect(() => {
    const ending = new AbortController();
    let frame = 0;
    draw.current = () => {
      if (frame !== 0 || paused.current || ending.signal.aborted) return;
      frame = requestAnimationFrame(() => {
        frame = 0;
        const newer = waiting.current;
        if (newer.length === 0) return;
        waiting.current = [];
        setLines((before) => withLines(before, newer));
      });
    };
    setLines([]);
    waiting.current = [];
    void follow(
      path,
      {},
      '0',
      {
        onEvents(events) {
          const newer = events.map(({ id, event, data }) => lineOf(data, event, id));
          waiting.current = withLines(waiting.current, newer);
          draw.current();
          return true;
        },
        onState: setState,
      },
      ending.signal,
    );
    return () => {
      ending.abort();
      cancelAnimationFrame(frame);
    };
  }, [path]);
  useEffect(() => {
    if (!is_paused) draw.current();
  }, [is_paused]);

  return { lines, state, is_paused, setPaused, clear: () => setLines([]) };
}
