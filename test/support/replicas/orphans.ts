import type { Story } from './actor.ts';
import type { Lane } from './lane.ts';

/**
 * What an operator does once the database was put back: what runs and is not recorded is adopted or ended, and what is
 * recorded and is nowhere is given up. Nothing may be under way.
 */
export async function settleOrphans(lane: Lane, story: Story, is_adopted: boolean): Promise<void> {
  const { orphans, unseen } = JSON.parse(await lane.command('orphans', 'list', '--json')) as {
    orphans: { sandbox_id: string }[];
    unseen: string[];
  };
  const ids = orphans.map(({ sandbox_id }) => sandbox_id);
  story.orphans += ids.length;
  story.unseen += unseen.length;
  if (ids.length > 0) await lane.command('orphans', is_adopted ? 'adopt' : 'end', ...ids);
  for (const id of unseen) await lane.command('orphans', 'give-up', id);
}
