import { useEffect, useRef, useState } from 'preact/hooks';
import { type StreamState, useStream } from '../api/follow.ts';
import type { Place } from '../api/place.ts';
import { type OutputLine, OutputLog } from './output-log.ts';

/** What a process has written, and goes on writing. */
export interface FollowedOutput {
  lines: readonly OutputLine[];
  /** Lines that came before those that are kept. */
  dropped: number;
  state: StreamState;
}

/** Follows the output of a process until it has ended. It is drawn once per frame, however much it is. */
export function useOutput({ path, sandbox }: Place, process_id: string, onExit: () => void): FollowedOutput {
  const [shown, setShown] = useState<Omit<FollowedOutput, 'state'>>({ lines: [], dropped: 0 });
  const frame = useRef(0);
  const state = useStream(`${path} ${process_id}`, async (signal, onConnection) => {
    const log = new OutputLog();
    const draw = () => {
      frame.current ||= requestAnimationFrame(() => {
        frame.current = 0;
        setShown({ lines: log.lines(), dropped: log.dropped });
      });
    };
    for await (const event of sandbox.output(process_id, { stream: 'all', signal, onConnection })) {
      if (signal.aborted) return;
      if (event.type === 'output') log.add(event.stream, event.bytes);
      if (event.type === 'exit') onExit();
      draw();
    }
  });
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  return { ...shown, state };
}
