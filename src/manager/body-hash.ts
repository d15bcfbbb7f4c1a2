import { createHash } from 'node:crypto';

/** SHA-256 of a body as it was understood: what tells whether two requests are the same. */
export function bodyHash(body: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(body ?? {}))
    .digest('hex');
}
