import type { Story } from './actor.ts';
import type { Lane } from './lane.ts';

/** What an operator does with what runs and is not recorded, after the database was put back. */
export async function settleOrphans(_lane: Lane, _story: Story, _is_adopted: boolean): Promise<string[]> {
  return [];
}
