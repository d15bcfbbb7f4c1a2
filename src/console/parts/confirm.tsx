import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { type Problem, problemOf } from '../api/problem.ts';
import { Dialog } from './dialog.tsx';
import { ProblemNote } from './notes.tsx';

interface ConfirmProps {
  title: string;
  /** The word on the button that does it. */
  verb: string;
  is_danger?: boolean;
  is_ready?: boolean;
  /** Does it; a rejection is shown, and the dialog stays. */
  run(): Promise<unknown>;
  onDone(): void;
  onClose(): void;
  children: ComponentChildren;
}

/** Asks before something happens, and says what will. */
export function Confirm(props: ConfirmProps) {
  const { title, verb, is_danger = false, is_ready = true, run, onDone, onClose, children } = props;
  const [is_running, setRunning] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const submit = async () => {
    setRunning(true);
    setProblem(null);
    try {
      await run();
      onDone();
    } catch (error) {
      setProblem(problemOf(error));
      setRunning(false);
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class={`button is-primary${is_danger ? ' is-danger' : ''}`}
            disabled={is_running || !is_ready}
          >
            {is_running ? `${verb}…` : verb}
          </button>
        </>
      }
    >
      {children}
      {problem && <ProblemNote problem={problem} />}
    </Dialog>
  );
}
