import { useEffect, useState } from 'preact/hooks';
import type { FinalState } from '../../contract/deliveries.ts';
import { deliveries, type Outbox } from '../api/deliveries.ts';
import { type Problem, problemOf } from '../api/problem.ts';
import { count, plural } from '../base/format.ts';
import { Confirm } from '../parts/confirm.tsx';
import { ProblemNote } from '../parts/notes.tsx';
import { say } from '../parts/toasts.tsx';

interface ReplayProps {
  outbox: Outbox;
  onClose(): void;
  onDone(): void;
}

/** Sends chosen records again. */
export function ReplayChosen({
  outbox,
  event_ids,
  onClose,
  onDone,
}: ReplayProps & { event_ids: readonly string[] }) {
  const [done, setDone] = useState(0);
  const run = async () => {
    for (const [index, event_id] of event_ids.entries()) {
      if (index < done) continue;
      await deliveries.replay(outbox, event_id);
      setDone(index + 1);
    }
  };
  return (
    <Confirm
      title={`Replay ${plural(event_ids.length, 'record')}?`}
      verb="Replay"
      run={run}
      onClose={onClose}
      onDone={() => {
        say(`${plural(event_ids.length, 'record')} will be sent again`);
        onClose();
        onDone();
      }}
    >
      <p>
        The same bytes are sent again, with the same event id and a new window. Receivers drop what they have
        by its id.
      </p>
      {event_ids.length > 1 && (
        <progress max={event_ids.length} value={done} aria-label="Replayed">
          {done}
        </progress>
      )}
    </Confirm>
  );
}

/** Sends every record in a state again, once its reader has seen how many these are. */
export function ReplayAll({ outbox, state, onClose, onDone }: ReplayProps & { state: FinalState }) {
  const [counted, setCounted] = useState(0);
  const [is_counting, setCounting] = useState(true);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    const ending = new AbortController();
    deliveries.count(outbox, state, ending.signal, setCounted).then(
      () => setCounting(false),
      (error: unknown) => !ending.signal.aborted && setProblem(problemOf(error)),
    );
    return () => ending.abort();
  }, [outbox, state]);
  return (
    <Confirm
      title={`Replay all ${state} records?`}
      verb={is_counting ? 'Replay' : `Replay ${count(counted)}`}
      is_ready={!is_counting && counted > 0}
      run={async () => {
        const { replayed } = await deliveries.replayAll(outbox, state);
        say(`${plural(replayed, 'record')} will be sent again`);
      }}
      onClose={onClose}
      onDone={() => {
        onClose();
        onDone();
      }}
    >
      <p role="status">
        {is_counting
          ? `Counting: ${count(counted)} so far…`
          : `${plural(counted, 'record')} are ${state} now.`}
      </p>
      <p>Each is sent again with the same bytes and a new window, 16 at a time, oldest first.</p>
      {problem && <ProblemNote problem={problem} />}
    </Confirm>
  );
}
