import { createHash } from 'node:crypto';

const HASH_LENGTH = 40;
const LABEL_VALUE = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

/** Whose objects these are: the label that lists and policies choose by. */
export const MANAGED = { 'app.kubernetes.io/managed-by': 'sandbox-manager' } as const;
/** Labels as a query's selector. */
export function selectorOf(labels: Record<string, string>): string {
  return Object.entries(labels)
    .map(([key, value]) => encodeURIComponent(`${key}=${value}`))
    .join(',');
}
/** `MANAGED` as a query's selector. */
export const MANAGED_SELECTOR = selectorOf(MANAGED);
const ID_LABEL = 'sandboxd.dev/sandbox-id';
/** The label of a claim that was taken from a pool: what it would be called had it been made for its sandbox. */
const TAKEN_LABEL = 'sandboxd.dev/sandbox';
/** The label of what waits in a pool: which one. What is taken from it loses the label. */
export const POOL_LABEL = 'sandboxd.dev/pool';

/** The label of Pods with `block-all`, which network policies choose by. */
export const BLOCK_ALL_LABEL = { 'sandboxd.dev/network': 'block-all' } as const;
/** The annotation of such a Pod that holds where its webhook is, as `host:port`. */
export const WEBHOOK_ANNOTATION = 'sandboxd.dev/webhook';

/** The annotation of a volume claim that holds the sandbox's record. */
export const RECORD_ANNOTATION = 'sandboxd.dev/record';

/**
 * The name of a sandbox's volume claim, Pod and secret, unless they come from a pool: see `Records`. A sandbox's id is no DNS name: it may have capitals, underscores,
 * dots, and more characters than a name.
 */
export function objectName(sandbox_id: string): string {
  return `sb-${createHash('sha256').update(sandbox_id).digest('hex').slice(0, HASH_LENGTH)}`;
}

/** The name of the Pod that reads the volume of a sandbox whose own Pod, of the name given, is gone. */
export function readerName(name: string): string {
  return `${name}-reader`;
}

/** The labels of a sandbox's objects; its id is one of them where it can be. The record always has it. */
export function labelsOf(sandbox_id: string): Record<string, string> {
  return { ...MANAGED, ...(LABEL_VALUE.test(sandbox_id) ? { [ID_LABEL]: sandbox_id } : {}) };
}

/** The sandbox that an object's labels name; null where they name none. */
export function sandboxIdIn({ labels }: { labels?: Record<string, string> }): string | null {
  return labels?.[ID_LABEL] ?? null;
}

/** The changes of a claim's labels by which a sandbox takes it from a pool. */
export function takenLabels(sandbox_id: string): Record<string, string | null> {
  return { ...labelsOf(sandbox_id), [TAKEN_LABEL]: objectName(sandbox_id), [POOL_LABEL]: null };
}

/** Chooses the claim that a sandbox has taken from a pool. */
export function takenSelector(sandbox_id: string): string {
  return selectorOf({ [TAKEN_LABEL]: objectName(sandbox_id) });
}
