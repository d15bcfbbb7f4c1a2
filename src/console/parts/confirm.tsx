import type { ComponentChildren } from 'preact';
import { Dialog } from './dialog.tsx';
import { ProblemNote } from './notes.tsx';
import { SubmitButtons, useSubmission } from './submit.tsx';

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
  const { is_running, problem, submit } = useSubmission();
  const onSubmit = () =>
    submit(async () => {
      await run();
      onDone();
    });
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={onSubmit}
      actions={
        <SubmitButtons
          words={[verb, `${verb}…`]}
          is_running={is_running}
          is_ready={is_ready}
          is_danger={is_danger}
          onClose={onClose}
        />
      }
    >
      {children}
      {problem && <ProblemNote problem={problem} />}
    </Dialog>
  );
}
