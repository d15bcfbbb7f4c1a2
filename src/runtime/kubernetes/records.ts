import { ApiError } from '../../contract/errors.ts';
import type { Persistence } from '../../contract/words.ts';
import { type ClusterClient, ClusterRefusal } from './api/cluster-client.ts';
import type { KubernetesObject, Meta, VolumeClaim } from './api/objects.ts';
import type { ReaderTemplate } from './manifests.ts';
import { objectName, RECORD_ANNOTATION, takenLabels, takenSelector } from './names.ts';

/** Names that are remembered; any can be asked for again. */
const KNOWN_MAX = 10_000;

/**
 * The record of a sandbox, in its volume claim; it holds no secret. The states are those of `LocalRuntime`, and `removing`:
 * everything of it has been handed over, and its objects are going, the claim last.
 */
export interface KubernetesRecord {
  sandbox_id: string;
  team_id: string;
  /** The template's name; the template itself may have changed since. */
  template: string;
  memory_mib: number;
  cpu_millis: number;
  state: 'creating' | 'created' | 'ending' | 'ended' | 'removing';
  outcome: 'killed' | 'lost' | null;
  persists: Persistence;
  /** What its volume is read with, whatever its template is by then; missing in an older record. */
  reader?: ReaderTemplate;
  /** `RuntimeSpec.note`; missing in an older record. */
  note?: string;
  /** The last state requested: the answer while its daemon gives none. */
  is_paused: boolean;
  /** The highest number of an operation on it that a replica has taken over; missing before the first. */
  taken_by?: number;
}

const STATES = new Set<string>(['creating', 'created', 'ending', 'ended', 'removing']);

/** A record as it was read: a change of it holds only if nobody else has changed it since. */
export interface FoundRecord {
  record: KubernetesRecord;
  claim: Meta;
}

/** The annotations of a claim that is made with a record. */
export function annotationsOf(record: KubernetesRecord): Record<string, string> {
  return { [RECORD_ANNOTATION]: JSON.stringify(record) };
}

/** The records of sandboxes, any of which any replica may change. */
export class Records {
  readonly #client: ClusterClient;
  /** The names of sandboxes' objects: those from a pool are called as they were there. */
  readonly #known = new Map<string, string>();

  constructor(client: ClusterClient) {
    this.#client = client;
  }

  /** The record of a sandbox; null if nothing of it exists. */
  async read(sandbox_id: string): Promise<FoundRecord | null> {
    const claims = this.#client.path('persistentvolumeclaims');
    const name = this.#known.get(sandbox_id) ?? objectName(sandbox_id);
    const claim = await this.#client.get<VolumeClaim>(this.#client.path('persistentvolumeclaims', name));
    const query = `${claims}?labelSelector=${takenSelector(sandbox_id)}`;
    const others = claim ? [claim] : await this.#client.list<KubernetesObject>(query, 'metadata');
    const found = others.map(foundIn).find((each) => each?.record.sandbox_id === sandbox_id) ?? null;
    if (found === null) this.#known.delete(sandbox_id);
    else this.#remember(sandbox_id, found.claim.name);
    return found;
  }

  /** What the objects of a sandbox are called, whether they exist or not. */
  async nameOf(sandbox_id: string): Promise<string> {
    const known = this.#known.get(sandbox_id) ?? (await this.read(sandbox_id))?.claim.name;
    return known ?? objectName(sandbox_id);
  }

  /** Gives what waits in a pool to a sandbox. Null if it was changed since it was read: somebody else may have it. */
  async take({ name, resourceVersion }: Meta, record: KubernetesRecord): Promise<FoundRecord | null> {
    const metadata = {
      resourceVersion,
      labels: takenLabels(record.sandbox_id),
      annotations: annotationsOf(record),
    };
    const path = this.#client.path('persistentvolumeclaims', name);
    try {
      const taken = await this.#client.patch<VolumeClaim>(path, { metadata });
      if (taken === null) return null;
      this.#remember(record.sandbox_id, name);
      return foundIn(taken);
    } catch (error) {
      if (error instanceof ClusterRefusal && error.status === 409) return null;
      throw error;
    }
  }

  #remember(sandbox_id: string, name: string): void {
    const [oldest] = this.#known.keys();
    if (this.#known.size >= KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(sandbox_id, name);
  }

  /** Notes that an operation was taken over, with its number, unless a higher one is noted; nothing where there is no record. */
  async noteTaken(sandbox_id: string, number: number): Promise<void> {
    for (;;) {
      const found = await this.read(sandbox_id);
      if (found === null || takenBy(found) >= number) return;
      try {
        await this.change(found, { taken_by: number });
        return;
      } catch (error) {
        // The operation's last owner was at work: it is read again.
        if (!(error instanceof ApiError) || error.code !== 'conflict') throw error;
      }
    }
  }

  /** Changes a record. Throws `conflict` if it was changed or removed since it was read. */
  async change({ record, claim }: FoundRecord, change: Partial<KubernetesRecord>): Promise<FoundRecord> {
    const annotations = annotationsOf({ ...record, ...change });
    const { resourceVersion, name } = claim;
    try {
      const path = this.#client.path('persistentvolumeclaims', name);
      const changed = await this.#client.patch<VolumeClaim>(path, {
        metadata: { resourceVersion, annotations },
      });
      if (changed !== null) return foundIn(changed) as FoundRecord;
    } catch (error) {
      if (!(error instanceof ClusterRefusal) || error.status !== 409) throw error;
      // The cluster changes the claim as well, for example when it is bound.
      const now = await this.read(record.sandbox_id);
      if (now !== null && JSON.stringify(now.record) === JSON.stringify(record)) {
        return this.change(now, change);
      }
    }
    throw new ApiError('conflict', 'The sandbox was changed by another operation.');
  }
}

/** The highest number of an operation that was taken over; 0 for none. */
export function takenBy(found: FoundRecord | null): number {
  return found?.record.taken_by ?? 0;
}

/** Somebody has changed a record so that it is none: nothing is done by it, and it is not taken for missing. */
export class DamagedRecord extends ApiError {
  constructor(claim: Meta) {
    super('internal_error', `The record of the sandbox in the volume claim ${claim.name} is damaged.`);
  }
}

/** The record in a claim; null for a claim of somebody else. Throws DamagedRecord. */
export function foundIn({ metadata }: KubernetesObject): FoundRecord | null {
  const text = metadata.annotations?.[RECORD_ANNOTATION];
  if (text === undefined) return null;
  const record = recordIn(text);
  if (record === null) throw new DamagedRecord(metadata);
  return { record, claim: metadata };
}

/** What of a record all else depends on: the rest may be missing in an older one. */
function recordIn(text: string): KubernetesRecord | null {
  try {
    const record = JSON.parse(text) as Partial<KubernetesRecord> | null;
    const { sandbox_id, team_id, template, state } = record ?? {};
    const is_whole = [sandbox_id, team_id, template].every((each) => typeof each === 'string' && each !== '');
    return is_whole && STATES.has(state as string) ? (record as KubernetesRecord) : null;
  } catch {
    return null;
  }
}
