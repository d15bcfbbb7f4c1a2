import { fileURLToPath } from 'node:url';

/** The launcher, which lies beside this program: `launcher.c` says what it does. */
export const LAUNCHER = fileURLToPath(new URL(`./launcher-${process.arch}`, import.meta.url));
