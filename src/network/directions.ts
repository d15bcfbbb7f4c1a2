/** The directions of a sandbox's packets: egress leaves the sandbox, ingress enters it. */
export const DIRECTIONS = ['egress', 'ingress'] as const;

/** One of `DIRECTIONS`. */
export type Direction = (typeof DIRECTIONS)[number];

/** One value per direction. */
export type PerDirection<Value> = Record<Direction, Value>;

/** The packet queues of a sandbox's namespace, by their numbers. */
export const QUEUES: Readonly<PerDirection<number>> = { egress: 1, ingress: 2 };

/**
 * The queues of UDP. The kernel splits its packets into datagrams first: a program may send up to 128 with one call, and
 * each has headers of its own.
 */
export const UDP_QUEUES: Readonly<PerDirection<number>> = { egress: 3, ingress: 4 };
