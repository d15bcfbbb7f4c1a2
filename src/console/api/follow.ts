import { useEffect, useRef, useState } from 'preact/hooks';
import { mayPass } from '../../client/streams/reconnect.ts';
import { after } from '../base/clock.ts';
import { type Problem, problemOf } from './problem.ts';

/** What a stream tells beside its events. */
export interface StreamState {
  state: 'connecting' | 'live' | 'waiting' | 'ended';
  problem: Problem | null;
}

/** Until a stream that could not be opened is begun again. */
const AGAIN_MS = 2_000;

/** Reads a stream to its end; the client opens it again where it breaks. */
export type ReadStream = (
  signal: AbortSignal,
  onConnection: (is_connected: boolean) => void,
) => Promise<void>;

/**
 * Follows what `key` stands for until the page shows something else, the stream ends, or it is refused for good. One that
 * cannot be opened now, because nobody answers or the sandbox is paused, is begun again.
 */
export function useStream(key: string, read: ReadStream): StreamState {
  const [state, setState] = useState<StreamState>({ state: 'connecting', problem: null });
  const [turn, setTurn] = useState(0);
  const reader = useRef(read);
  reader.current = read;
  useEffect(() => {
    const ending = new AbortController();
    let cancel = () => {};
    const tell = (next: StreamState) => !ending.signal.aborted && setState(next);
    tell({ state: 'connecting', problem: null });
    const onConnection = (is_connected: boolean) =>
      tell({ state: is_connected ? 'live' : 'waiting', problem: null });
    reader.current(ending.signal, onConnection).then(
      () => tell({ state: 'ended', problem: null }),
      (error: unknown) => {
        if (ending.signal.aborted) return;
        const problem = problemOf(error);
        if (!mayPass(error)) return tell({ state: 'ended', problem });
        tell({ state: 'waiting', problem });
        cancel = after(AGAIN_MS, () => setTurn((count) => count + 1));
      },
    );
    return () => {
      ending.abort();
      cancel();
    };
  }, [key, turn]);
  return state;
}
