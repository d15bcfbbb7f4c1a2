import { useState } from 'preact/hooks';
import { RESTART_POLICIES, type RestartPolicy } from '../../contract/words.ts';
import type { Place } from '../api/place.ts';
import { type ProcessRequest, processes } from '../api/processes.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Check, Field, Select } from '../parts/field.tsx';
import { ProblemNote } from '../parts/notes.tsx';
import { SubmitButtons, useSubmission } from '../parts/submit.tsx';
import { durationOf, pairsOf } from '../sandboxes/claim-form.ts';

const EMPTY = {
  shell: '',
  name: '',
  cwd: '',
  user: '',
  env: '',
  timeout: '',
  policy: 'never' as RestartPolicy,
  has_stdin: false,
};
type Form = typeof EMPTY;
type Faults = Partial<Record<keyof Form, string>>;

interface StartProps {
  place: Place;
  onClose(): void;
  onStarted(process_id: string): void;
}

/** Starts a process by a line of shell. */
export function StartDialog({ place, onClose, onStarted }: StartProps) {
  const [form, setForm] = useState(EMPTY);
  const [faults, setFaults] = useState<Faults>({});
  const { is_running, problem, submit } = useSubmission();
  const set = (change: Partial<Form>) => setForm((before) => ({ ...before, ...change }));
  const onSubmit = () => {
    const { request, faults: found } = requestOf(form);
    setFaults(found);
    if (Object.keys(found).length > 0) return;
    submit(async () => {
      onStarted((await processes.start(place, request)).process_id);
    });
  };
  return (
    <Dialog
      title="Start a process"
      is_wide
      onClose={onClose}
      onSubmit={onSubmit}
      actions={<SubmitButtons words={['Start', 'Starting…']} is_running={is_running} onClose={onClose} />}
    >
      <Field
        label="Command"
        rows={2}
        value={form.shell}
        placeholder="npm test"
        hint="a line of /bin/sh"
        wrong={faults.shell}
        is_first
        onInput={(shell) => set({ shell })}
      />
      <div class="fields">
        <Field label="Name" value={form.name} placeholder="none" onInput={(name) => set({ name })} />
        <Field
          label="Directory"
          value={form.cwd}
          placeholder="the sandbox's own"
          wrong={faults.cwd}
          onInput={(cwd) => set({ cwd })}
        />
        <Field
          label="User"
          value={form.user}
          placeholder="the sandbox's own"
          onInput={(user) => set({ user })}
        />
        <Field
          label="Ends after"
          value={form.timeout}
          placeholder="never"
          hint="like 5m"
          wrong={faults.timeout}
          onInput={(timeout) => set({ timeout })}
        />
        <Select
          label="Start again"
          value={form.policy}
          options={RESTART_POLICIES}
          onChange={(policy) => set({ policy: policy as RestartPolicy })}
        />
      </div>
      <Field
        label="Environment"
        rows={2}
        value={form.env}
        placeholder="NAME=value"
        wrong={faults.env}
        onInput={(env) => set({ env })}
      />
      <Check
        label="It reads its standard input"
        checked={form.has_stdin}
        onChange={(has_stdin) => set({ has_stdin })}
      />
      {problem && <ProblemNote problem={problem} />}
    </Dialog>
  );
}

function requestOf(form: Form): { request: ProcessRequest; faults: Faults } {
  const faults: Faults = {};
  const { pairs: env, wrong } = pairsOf(form.env, '=');
  const timeout = durationOf(form.timeout);
  if (form.shell.trim() === '') faults.shell = 'is required';
  if (form.cwd !== '' && !form.cwd.startsWith('/')) faults.cwd = 'must be an absolute path';
  if (wrong) faults.env = wrong;
  if (timeout.wrong) faults.timeout = timeout.wrong;
  const request = {
    shell: form.shell,
    ...(form.name === '' ? {} : { name: form.name }),
    ...(form.cwd === '' ? {} : { cwd: form.cwd }),
    ...(form.user === '' ? {} : { user: form.user }),
    ...(Object.keys(env).length === 0 ? {} : { env }),
    ...(timeout.seconds ? { timeout_ms: timeout.seconds * 1_000 } : {}),
    ...(form.policy === 'never' ? {} : { restart: { policy: form.policy } }),
    ...(form.has_stdin ? { stdin: 'pipe' as const } : {}),
  };
  return { request, faults };
}
