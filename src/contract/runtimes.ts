/** The values of `--runtime`. Source: contract section 7. */
export const RUNTIMES = ['local', 'local-unsafe', 'kubernetes', 'none'] as const;

/** One of `RUNTIMES`. */
export type RuntimeKind = (typeof RUNTIMES)[number];

/** The values of `--kubernetes-injection`. Source: contract section 7. */
export const INJECTIONS = ['auto', 'image-volume', 'init-container'] as const;

/** One of `INJECTIONS`. */
export type InjectionOption = (typeof INJECTIONS)[number];
