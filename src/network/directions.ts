/** The two ways of a sandbox's packets: egress leaves it, ingress reaches it. */
export const DIRECTIONS = ['egress', 'ingress'] as const;

/** One of `DIRECTIONS`. */
export type Direction = (typeof DIRECTIONS)[number];

/** Something for each direction. */
export type PerDirection<Value> = Record<Direction, Value>;

/** The number of each direction's packet queue in a sandbox's namespace. */
export const QUEUES: Readonly<PerDirection<number>> = { egress: 1, ingress: 2 };
