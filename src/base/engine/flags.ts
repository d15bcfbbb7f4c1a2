/** Keeps SIGUSR1 from opening an inspector, from the first instruction on: for every start of Node. */
export const NO_SIGUSR1 = '--disable-sigusr1';

/**
 * Flags for a start of `sandboxd` or `sandboxctl`. With the second, hot functions are optimised one after the other in their
 * own thread, for up to 10 ms each: what several compilations at a time take from the C library lies between what stays, 10
 * to 20 MB that it never gives back. The manager, of which there is one for many sandboxes, does without.
 */
export const NODE_FLAGS = [NO_SIGUSR1, '--no-concurrent-recompilation'];
