import { type Clock, sleep } from '../../base/clock.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import type { ClusterClient } from './api/cluster-client.ts';
import type { ClusterEvent } from './api/objects.ts';

/** Most volumes are there sooner: then nothing is asked. */
const ASK_EVERY_MS = 2_000;
const MESSAGE_MAX = 512;
/** What nobody but an administrator can change. The codes are those of storage drivers (CSI). */
const NEVER = [
  /storageclass\S* ".*" not found/i,
  /no storage class is set/,
  /code = (InvalidArgument|Unimplemented)\b/,
];

/** Why a claim's volume will not be made, as its last events say; null if it may be. */
export function volumeProblem(events: ClusterEvent[]): ApiError | null {
  const said = events.filter(({ type }) => type === 'Warning').map(({ message }) => message ?? '');
  for (const message of said) {
    const text = message.replaceAll(/\s+/g, ' ').trim().slice(0, MESSAGE_MAX);
    if (/code = OutOfRange\b/.test(text)) {
      return invalidField('config.resources.disk', `is refused by the storage of the cluster: ${text}`);
    }
    if (/code = ResourceExhausted\b/.test(text)) {
      return new ApiError('capacity_exhausted', `The cluster has no room for the volume: ${text}`);
    }
    if (NEVER.some((each) => each.test(text))) {
      return new ApiError('internal_error', `The sandbox's volume is not made: ${text}`);
    }
  }
  return null;
}

/** The same of a claim as the cluster says it now; null also where the cluster cannot be asked. */
export async function volumeProblemOf(client: ClusterClient, claim: string): Promise<ApiError | null> {
  const selector = encodeURIComponent(
    `involvedObject.kind=PersistentVolumeClaim,involvedObject.name=${claim}`,
  );
  const events = await client
    .list<ClusterEvent>(`${client.path('events')}?fieldSelector=${selector}`)
    .catch(() => []); // asked again
  return volumeProblem(events);
}

/** What `started` resolves with. Rejects as it does, and as soon as the volume of a claim is known not to be made. */
export async function orVolumeProblem<Value>(
  client: ClusterClient,
  clock: Clock,
  claim: string,
  started: Promise<Value>,
): Promise<Value> {
  const over = new AbortController();
  const watch = async (): Promise<never> => {
    for (;;) {
      await sleep(clock, ASK_EVERY_MS, over.signal);
      over.signal.throwIfAborted();
      const problem = await volumeProblemOf(client, claim);
      if (problem !== null) throw problem;
    }
  };
  const watching = watch();
  try {
    return await Promise.race([started, watching]);
  } finally {
    over.abort();
    // Whichever has lost has nobody who waits for it.
    started.catch(() => {});
    watching.catch(() => {});
  }
}
