import { useState } from 'preact/hooks';
import { Badge } from '../parts/badge.tsx';
import { Field } from '../parts/field.tsx';
import { type Verdict, verify } from './verify.ts';

const SAYS: Record<Verdict, [tone: 'good' | 'bad' | 'warn', text: string]> = {
  valid: ['good', 'signed with this secret'],
  invalid: ['bad', 'not signed with this secret'],
  unsigned: ['warn', 'sent without a signature'],
};

/** Checks the signature of a record with a secret that never leaves the browser. */
export function VerifyBox({ body, headers }: { body: string; headers: Record<string, string> }) {
  const [secret, setSecret] = useState('');
  const [verdict, setVerdict] = useState<Verdict | null>(null);
  const can_check = globalThis.isSecureContext;
  return (
    <section class="panel" aria-label="Verify">
      <div class="panel-head">
        <h2>Verify the signature</h2>
      </div>
      <form
        class="panel-body stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (secret !== '') void verify(secret, body, headers).then(setVerdict);
        }}
      >
        <Field
          label="Signing secret"
          type="password"
          value={secret}
          hint="It is used in this browser alone, and forgotten with the page."
          onInput={(value) => {
            setSecret(value);
            setVerdict(null);
          }}
        />
        <div class="actions" aria-live="polite">
          <button type="submit" class="button" disabled={!can_check || secret === ''}>
            Verify
          </button>
          {verdict && <Badge tone={SAYS[verdict][0]} text={SAYS[verdict][1]} />}
        </div>
        {!can_check && <p class="muted">Browsers compute signatures over https, or on localhost, alone.</p>}
      </form>
    </section>
  );
}
