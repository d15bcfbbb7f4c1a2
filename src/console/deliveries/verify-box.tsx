import { useState } from 'preact/hooks';
import { Badge } from '../parts/badge.tsx';
import { Field } from '../parts/field.tsx';

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

/** What the check of a signature came to. */
type Verdict = 'valid' | 'invalid' | 'unsigned';

const SIGNATURE_HEADER = 'x-service-signature';

/** The signature among the stored headers of a record; null: it was sent without one. */
function signatureOf(headers: Record<string, string>): string | null {
  const [, value] = Object.entries(headers).find(([name]) => name.toLowerCase() === SIGNATURE_HEADER) ?? [];
  return value ?? null;
}

/** HMAC-SHA256 over the body's bytes, keyed with the secret's, as 64 lower-case hex digits. Contract section 2. */
async function sign(secret: string, body: string): Promise<string> {
  const encoder = new TextEncoder();
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign']);
  const bytes = new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(body)));
  return [...bytes].map((each) => each.toString(16).padStart(2, '0')).join('');
}

/** Whether a record was signed with this secret. The secret stays in the browser. */
export async function verify(
  secret: string,
  body: string,
  headers: Record<string, string>,
): Promise<Verdict> {
  const signature = signatureOf(headers);
  if (signature === null) return 'unsigned';
  return (await sign(secret, body)) === signature ? 'valid' : 'invalid';
}
