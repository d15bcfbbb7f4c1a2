import { ApiError } from '../../contract/errors.ts';
import { sizeText } from '../../contract/limits.ts';
import type { NodeBudget } from '../config/config.ts';

/** What a claim calls each part of the budget, and how it writes an amount; null: nothing asks for less of it. */
const PARTS = {
  memory_mib: { resource: 'memory', written: sizeText },
  cpu_millis: { resource: 'cpu', written: (millis: number) => String(millis / 1000) },
  sandboxes: { resource: 'sandboxes', written: null },
  disk_mib: { resource: 'disk', written: sizeText },
};

/**
 * The error (503) that says what is left of a part of the node, in its unit, and how to take less. `share`: that of the
 * team, in percent, if it is what refuses.
 */
export function capacityExhausted(
  part: keyof NodeBudget,
  { asked, left, share }: { asked: number; left: number; share: number | null },
): ApiError {
  const { resource, written } = PARTS[part];
  const more =
    written === null
      ? ''
      : `: ${written(asked)} are needed, ${written(left)} are free. A smaller resources.${resource} asks for less`;
  const what = share === null ? 'node does' : `team's share of the node (${share} %) does`;
  const text = `The ${what} not have enough ${resource} left${more}.`;
  const advice =
    share === null ? '' : ' Paused sandboxes and forks take of the share until they are deleted.';
  const amounts = written === null ? {} : { requested: written(asked), available: written(left) };
  return new ApiError('capacity_exhausted', text + advice, {
    resource,
    ...amounts,
    team_share: share !== null,
  });
}
