import manifest from '../../package.json' with { type: 'json' };

/** The version of the package, as shown in answers, logs and requests. */
export const VERSION: string = manifest.version;
