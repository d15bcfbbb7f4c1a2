import { ApiError } from '../../../contract/errors.ts';
import type { Pod } from '../api/objects.ts';

const BY_DIGEST = /^[^\s@]+@sha256:[0-9a-f]{64}$/;

/** The image of a sandbox as a copy of it is to name it: by its digest where the node knows that, else as it was named. */
export function pinnedImage(pod: Pod, container: string): string | null {
  const id = imageId(pod, container);
  if (id !== null && BY_DIGEST.test(id)) return id;
  return pod.spec.containers?.find(({ name }) => name === container)?.image ?? null;
}

/**
 * Throws `conflict` where a copy has another image than its source: what a sandbox has changed of one image means nothing
 * on another.
 */
export function checkSameImage(source: Pod | null, child: Pod | null, container: string): void {
  const [of_source, of_child] = [source, child].map((pod) => pod && imageId(pod, container));
  if (of_source && of_source === of_child) return;
  throw new ApiError(
    'conflict',
    "The image has changed since the sandbox was made: its root can't be copied.",
  );
}

function imageId(pod: Pod, container: string): string | null {
  return pod.status?.containerStatuses?.find(({ name }) => name === container)?.imageID || null;
}
