import type { Story } from './actor.ts';
import type { Lane } from './lane.ts';

/** A command that a busy machine has kept from its database is given again so often. */
const TRIES = 6;

/**
 * What an operator does once the database was put back: what runs and is not recorded is adopted or ended, and what is
 * recorded and is nowhere is given up. Nothing may be under way.
 */
export async function settleOrphans(lane: Lane, story: Story, is_adopted: boolean): Promise<void> {
  const found = { orphans: new Set<string>(), unseen: new Set<string>() };
  for (let tries = 1; ; tries++) {
    try {
      await settleOnce(lane, found, is_adopted);
      break;
    } catch (error) {
      if (tries === TRIES) throw error;
    }
  }
  story.orphans = found.orphans.size;
  story.unseen = found.unseen.size;
}

async function settleOnce(
  lane: Lane,
  found: { orphans: Set<string>; unseen: Set<string> },
  is_adopted: boolean,
): Promise<void> {
  const { orphans, unseen } = JSON.parse(await lane.command('orphans', 'list', '--json')) as {
    orphans: { sandbox_id: string }[];
    unseen: string[];
  };
  for (const { sandbox_id } of orphans) {
    found.orphans.add(sandbox_id);
    const end = () => lane.command('orphans', 'end', sandbox_id);
    // One that was never complete can only be ended.
    await (is_adopted ? lane.command('orphans', 'adopt', sandbox_id).catch(end) : end());
  }
  for (const sandbox_id of unseen) {
    found.unseen.add(sandbox_id);
    await lane.command('orphans', 'give-up', sandbox_id);
  }
}
