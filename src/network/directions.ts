/** The directions of a sandbox's packets: egress leaves the sandbox, ingress enters it. */
export const DIRECTIONS = ['egress', 'ingress'] as const;

/** One of `DIRECTIONS`. */
export type Direction = (typeof DIRECTIONS)[number];

/** One value per direction. */
export type PerDirection<Value> = Record<Direction, Value>;

/** The number of each direction's packet queue in a sandbox's namespace. */
export const QUEUES: Readonly<PerDirection<number>> = { egress: 1, ingress: 2 };
