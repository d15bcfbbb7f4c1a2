import { useRef, useState } from 'preact/hooks';
import { type StreamState, useStream } from '../api/follow.ts';
import type { Place } from '../api/place.ts';
import { useDrawing } from '../base/use-drawing.ts';
import { type OutputLine, OutputLog } from './output-log.ts';

/** What a process has written, and goes on writing. */
export interface FollowedOutput {
  lines: readonly OutputLine[];
  /** Lines that came before those that are kept. */
  dropped: number;
  state: StreamState;
}

/** Follows the output of a process until it has ended. It is drawn a few times a second, however much it is. */
export function useOutput({ path, sandbox }: Place, process_id: string, onExit: () => void): FollowedOutput {
  const [shown, setShown] = useState<Omit<FollowedOutput, 'state'>>({ lines: [], dropped: 0 });
  const log = useRef(new OutputLog());
  const drawing = useDrawing(() => setShown({ lines: log.current.lines(), dropped: log.current.dropped }));
  const state = useStream(`${path} ${process_id}`, async (signal, onConnection) => {
    log.current = new OutputLog();
    for await (const event of sandbox.output(process_id, { stream: 'all', signal, onConnection })) {
      if (signal.aborted) return;
      if (event.type === 'output') log.current.add(event.stream, event.bytes);
      if (event.type === 'exit') onExit();
      drawing.ask();
    }
  });
  return { ...shown, state };
}
