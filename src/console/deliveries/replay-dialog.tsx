import { useEffect, useRef, useState } from 'preact/hooks';
import type { FinalState } from '../../contract/words.ts';
import type { DeliveryFilter, Outbox } from '../api/deliveries.ts';
import { deliveries } from '../api/deliveries.ts';
import { type Problem, problemOf } from '../api/problem.ts';
import { count, plural } from '../base/format.ts';
import { Confirm } from '../parts/confirm.tsx';
import { ProblemNote } from '../parts/notes.tsx';
import { say } from '../parts/toasts.tsx';
import { matching, replayEach } from './replaying.ts';

interface ReplayProps {
  outbox: Outbox;
  onClose(): void;
  onDone(): void;
}

/** A signal that is aborted when its dialog is closed. */
function useClosing(): AbortSignal {
  const closing = useRef(new AbortController());
  useEffect(() => () => closing.current.abort(), []);
  return closing.current.signal;
}

/** Sends chosen records again. */
export function ReplayChosen({
  outbox,
  event_ids,
  onClose,
  onDone,
}: ReplayProps & { event_ids: readonly string[] }) {
  const [done, setDone] = useState(0);
  const signal = useClosing();
  const left = useRef([...event_ids]);
  return (
    <Confirm
      title={`Replay ${plural(event_ids.length, 'record')}?`}
      verb="Replay"
      run={() => replayEach(outbox, left.current, signal, (rest) => setDone(event_ids.length - rest))}
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
      {event_ids.length > 1 && <Progress done={done} total={event_ids.length} />}
    </Confirm>
  );
}

function Progress({ done, total }: { done: number; total: number }) {
  return (
    <progress max={total} value={done} aria-label="Replayed">
      {done}
    </progress>
  );
}

interface ReplayAllProps extends ReplayProps {
  state: FinalState;
  /** What else the records are narrowed by, as the list is. */
  filter: Omit<DeliveryFilter, 'state' | 'cursor' | 'limit'>;
}

/** Sends every record in a state again, as far as the list's filter has it, once its reader has seen how many these are. */
export function ReplayAll({ outbox, state, filter, onClose, onDone }: ReplayAllProps) {
  const [counted, setCounted] = useState(0);
  const [is_counting, setCounting] = useState(true);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [done, setDone] = useState(0);
  const signal = useClosing();
  const found = useRef<string[]>([]);
  const narrowed = Object.entries(filter);
  useEffect(() => {
    const count = async () => {
      for await (const event_ids of matching(outbox, { ...filter, state }, signal)) {
        found.current.push(...event_ids);
        setCounted(found.current.length);
      }
      setCounting(false);
    };
    count().catch((error: unknown) => !signal.aborted && setProblem(problemOf(error)));
  }, []);
  const run = async () => {
    if (narrowed.length === 0) {
      const { replayed } = await deliveries.replayAll(outbox, state);
      return say(`${plural(replayed, 'record')} will be sent again`);
    }
    await replayEach(outbox, found.current, signal, (rest) => setDone(counted - rest));
    say(`${plural(counted, 'record')} will be sent again`);
  };
  return (
    <Confirm
      title={`Replay all ${state} records?`}
      verb={is_counting ? 'Replay' : `Replay ${count(counted)}`}
      is_ready={!is_counting && counted > 0}
      run={run}
      onClose={onClose}
      onDone={() => {
        onClose();
        onDone();
      }}
    >
      <p role="status">
        {is_counting
          ? `Counting: ${count(counted)} so far…`
          : `${plural(counted, 'record')} ${counted === 1 ? 'is' : 'are'} ${state} now.`}
      </p>
      {narrowed.map(([name, value]) => (
        <p key={name}>
          Only those with <code>{`${name} ${value}`}</code>, as the list is filtered.
        </p>
      ))}
      <p>
        Each is sent again with the same bytes and a new window, 16 at a time, oldest first.
        {narrowed.length > 0 && ' Cancel stops in between; what is done stays done.'}
      </p>
      {narrowed.length > 0 && done > 0 && <Progress done={done} total={counted} />}
      {problem && <ProblemNote problem={problem} />}
    </Confirm>
  );
}
