/** What the check of a signature came to. */
export type Verdict = 'valid' | 'invalid' | 'unsigned';

const SIGNATURE_HEADER = 'x-service-signature';

/** The signature among the stored headers of a record; null: it was sent without one. */
export function signatureOf(headers: Record<string, string>): string | null {
  const [, value] = Object.entries(headers).find(([name]) => name.toLowerCase() === SIGNATURE_HEADER) ?? [];
  return value ?? null;
}

/** HMAC-SHA256 over the body's bytes, keyed with the secret's, as 64 lower-case hex digits. Contract section 2. */
export async function sign(secret: string, body: string): Promise<string> {
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
