import { useRef, useState } from 'preact/hooks';
import { randomKey } from '../../client/http-client.ts';
import { sandboxes } from '../api/sandboxes.ts';
import { Dialog } from '../parts/dialog.tsx';
import { ProblemNote } from '../parts/notes.tsx';
import { SubmitButtons, useSubmission } from '../parts/submit.tsx';
import { say } from '../parts/toasts.tsx';
import { type ClaimForm, claimOf, EMPTY_CLAIM, type Faults } from './claim-form.ts';
import { Basics, Lifetime, Network, Webhook } from './claim-parts.tsx';

/** Claims a sandbox with every option of the contract; it is checked here as the manager does, and then by it. */
export function ClaimDialog({ onClose, onClaimed }: { onClose(): void; onClaimed(id: string): void }) {
  const [form, setForm] = useState(EMPTY_CLAIM);
  const [faults, setFaults] = useState<Faults>({});
  const { is_running, problem, submit } = useSubmission();
  // The same claim sent twice, where its answer was lost, claims one sandbox.
  const key = useRef({ of: '', key: '' });
  const set = (change: Partial<ClaimForm>) => setForm((before) => ({ ...before, ...change }));
  const onSubmit = () => {
    const claim = claimOf(form);
    setFaults(claim.faults);
    if (Object.keys(claim.faults).length > 0) return;
    const of = JSON.stringify(claim.body);
    if (key.current.of !== of) key.current = { of, key: randomKey() };
    submit(async () => {
      const { sandbox_id } = await sandboxes.claim(claim.body, key.current.key);
      say(`Claimed: ${sandbox_id}`);
      onClaimed(sandbox_id);
    });
  };
  return (
    <Dialog
      title="Claim a sandbox"
      is_wide
      onClose={onClose}
      onSubmit={onSubmit}
      actions={<SubmitButtons words={['Claim', 'Claiming…']} is_running={is_running} onClose={onClose} />}
    >
      <Basics form={form} set={set} faults={faults} />
      <Lifetime form={form} set={set} faults={faults} />
      <Webhook form={form} set={set} faults={faults} />
      <Network form={form} set={set} faults={faults} />
      {Object.keys(faults).length > 0 && (
        <p class="note is-bad" role="alert">
          {Object.keys(faults).length === 1 ? 'One field is' : 'Some fields are'} not as the manager takes
          them.
        </p>
      )}
      {problem && <ProblemNote problem={problem} />}
    </Dialog>
  );
}
