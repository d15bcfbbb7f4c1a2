import { useEffect, useRef, useState } from 'preact/hooks';
import { follow, type StreamState } from '../api/stream.ts';
import { bytesOf, type OutputLine, OutputLog } from './output-log.ts';

/** What a process has written, and goes on writing. */
export interface FollowedOutput {
  lines: readonly OutputLine[];
  /** Lines that came before those that are kept. */
  dropped: number;
  state: StreamState;
}

interface OutputEvent {
  stream: 'stdout' | 'stderr';
  data: string;
  encoding?: string;
}

/** Follows the output of a process until it has ended. It is drawn once per frame, however much it is. */
export function useOutput(path: string, onExit: () => void): FollowedOutput {
  const [shown, setShown] = useState<{ lines: readonly OutputLine[]; dropped: number }>({
    lines: [],
    dropped: 0,
  });
  const [state, setState] = useState<StreamState>({ state: 'connecting', problem: null });
  const exited = useRef(onExit);
  exited.current = onExit;

  useEffect(() => {
    const ending = new AbortController();
    const log = new OutputLog();
    let frame = 0;
    const draw = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setShown({ lines: log.lines(), dropped: log.dropped });
      });
    };
    void follow(
      path,
      { stream: 'all', follow: true },
      null,
      {
        onEvents(events) {
          for (const { event, data } of events) {
            if (event === 'exit') {
              draw();
              exited.current();
              return false;
            }
            if (event !== 'output') continue;
            const { stream, data: text, encoding } = JSON.parse(data) as OutputEvent;
            log.add(stream === 'stderr' ? 'stderr' : 'stdout', bytesOf(text, encoding));
          }
          draw();
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
  return { ...shown, state };
}
