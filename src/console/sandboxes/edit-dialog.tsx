import { useState } from 'preact/hooks';
import type { ManagedSandbox } from '../api/managed-sandbox.ts';
import { sandboxes } from '../api/sandboxes.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Check, Field } from '../parts/field.tsx';
import { ProblemNote } from '../parts/notes.tsx';
import { SubmitButtons, useSubmission } from '../parts/submit.tsx';
import { say } from '../parts/toasts.tsx';
import { type ChangeFaults, type ChangeForm, changeOf, formOf } from './change-form.ts';

interface EditProps {
  sandbox: ManagedSandbox;
  onClose(): void;
  onDone(): void;
}

/** Changes what the manager lets be changed in a sandbox's record; the rest is set with the claim alone. */
export function EditDialog({ sandbox, onClose, onDone }: EditProps) {
  const [form, setForm] = useState(() => formOf(sandbox));
  const [faults, setFaults] = useState<ChangeFaults>({});
  const { is_running, problem, submit } = useSubmission();
  const set = (change: Partial<ChangeForm>) => setForm((before) => ({ ...before, ...change }));
  const change = changeOf(form, sandbox);
  const onSubmit = () => {
    setFaults(change.faults);
    if (Object.keys(change.faults).length > 0) return;
    submit(async () => {
      await sandboxes.change(sandbox.id, change.config);
      say(`Changed: ${sandbox.id}`);
      onClose();
      onDone();
    });
  };
  return (
    <Dialog
      title="Change this sandbox"
      is_wide
      onClose={onClose}
      onSubmit={onSubmit}
      actions={
        <SubmitButtons
          words={['Change', 'Changing…']}
          is_running={is_running}
          is_ready={Object.keys(change.config).length > 0}
          onClose={onClose}
        />
      }
    >
      <code>{sandbox.id}</code>
      <div class="fields">
        <Field
          label="Memory"
          value={form.memory}
          wrong={faults.memory}
          is_first
          onInput={(memory) => set({ memory })}
        />
        <Field
          label="Pause after"
          value={form.ttl}
          placeholder={sandbox.expires_at === null ? 'never' : 'as it is'}
          wrong={faults.ttl}
          hint="from now, like 30m; 0 is never"
          onInput={(ttl) => set({ ttl })}
        />
        <Field
          label="Pause when unused for"
          value={form.idle_ttl}
          placeholder={sandbox.idle_ttl === 0 ? 'never' : `${sandbox.idle_ttl}s`}
          wrong={faults.idle_ttl}
          hint="like 10m; 0 is never"
          onInput={(idle_ttl) => set({ idle_ttl })}
        />
        <Field
          label="Delete after"
          value={form.hard_ttl}
          placeholder={sandbox.hard_expires_at === null ? 'never' : 'as it is'}
          wrong={faults.hard_ttl}
          hint="from now, like 7d; 0 is never"
          onInput={(hard_ttl) => set({ hard_ttl })}
        />
      </div>
      <Check
        label="Resume it with the next call while it is paused"
        checked={form.auto_resume}
        onChange={(auto_resume) => set({ auto_resume })}
      />
      <Check
        label="Replace the environment of processes that are started from now on"
        checked={form.sets_env}
        onChange={(sets_env) => set({ sets_env })}
      />
      {form.sets_env && (
        <Field
          label="Environment"
          rows={3}
          value={form.env_vars}
          placeholder="NAME=value"
          wrong={faults.env_vars}
          hint={
            sandbox.env_names.length === 0
              ? 'NAME=value on each line'
              : `instead of ${sandbox.env_names.join(', ')}; their values are not shown`
          }
          onInput={(env_vars) => set({ env_vars })}
        />
      )}
      <p class="muted">
        Its template, metadata, webhook, cores, disk and network are set with the claim alone.
      </p>
      {problem && <ProblemNote problem={problem} />}
    </Dialog>
  );
}
