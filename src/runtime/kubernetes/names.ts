import { createHash } from 'node:crypto';

const HASH_LENGTH = 40;
const LABEL_VALUE = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

/** Whose objects these are: the label that lists and policies choose by. */
export const MANAGED = { 'app.kubernetes.io/managed-by': 'sandbox-manager' } as const;
/** `MANAGED` as a query's selector. */
export const MANAGED_SELECTOR = Object.entries(MANAGED)
  .map(([key, value]) => encodeURIComponent(`${key}=${value}`))
  .join(',');
const ID_LABEL = 'sandboxd.dev/sandbox-id';

/** The annotation of a volume claim that holds the sandbox's record. */
export const RECORD_ANNOTATION = 'sandboxd.dev/record';

/**
 * The name of a sandbox's volume claim, Pod and secret. A sandbox's id is no DNS name: it may have capitals, underscores,
 * dots, and more characters than a name.
 */
export function objectName(sandbox_id: string): string {
  return `sb-${createHash('sha256').update(sandbox_id).digest('hex').slice(0, HASH_LENGTH)}`;
}

/** The name of the Pod that reads the volume of a sandbox whose own Pod is gone. */
export function readerName(sandbox_id: string): string {
  return `${objectName(sandbox_id)}-reader`;
}

/** The labels of a sandbox's objects; its id is one of them where it can be. The record always has it. */
export function labelsOf(sandbox_id: string): Record<string, string> {
  return { ...MANAGED, ...(LABEL_VALUE.test(sandbox_id) ? { [ID_LABEL]: sandbox_id } : {}) };
}
