import { useState } from 'preact/hooks';
import { type Problem, problemOf } from '../api/problem.ts';

/** What a dialog does when it is submitted. */
interface Submission {
  is_running: boolean;
  /** Why it could not be done. */
  problem: Problem | null;
  /** Does it; a rejection is kept as the problem, and the dialog stays. */
  submit(run: () => Promise<void>): void;
}

/** Follows what a dialog does. Once it has been done the dialog is closed, so it counts as running to the end. */
export function useSubmission(): Submission {
  const [is_running, setRunning] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const carryOut = async (run: () => Promise<void>) => {
    setRunning(true);
    setProblem(null);
    try {
      await run();
    } catch (error) {
      setProblem(problemOf(error));
      setRunning(false);
    }
  };
  return { is_running, problem, submit: (run) => void carryOut(run) };
}

interface SubmitButtonsProps {
  /** On the button that does it, and while it is done. */
  words: readonly [verb: string, running: string];
  is_running: boolean;
  is_ready?: boolean;
  is_danger?: boolean;
  onClose(): void;
}

/** The buttons at the end of a dialog. */
export function SubmitButtons(props: SubmitButtonsProps) {
  const { words, is_running, is_ready = true, is_danger = false, onClose } = props;
  return (
    <>
      <button type="button" class="button" onClick={onClose}>
        Cancel
      </button>
      <button
        type="submit"
        class={`button is-primary${is_danger ? ' is-danger' : ''}`}
        disabled={is_running || !is_ready}
      >
        {words[is_running ? 1 : 0]}
      </button>
    </>
  );
}
