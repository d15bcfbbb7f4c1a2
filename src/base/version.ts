import manifest from '../../package.json' with { type: 'json' };

/** The version of the package, as answered, logged and sent. */
export const VERSION: string = manifest.version;
