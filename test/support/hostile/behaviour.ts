import type { HostileClient } from './hostile-client.ts';

/** Something that a client may do, by what it is. It ends by itself, or soon after the attack is over. */
export type Behaviours = Record<string, (client: HostileClient) => Promise<void>>;
