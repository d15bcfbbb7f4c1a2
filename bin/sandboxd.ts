#!/usr/bin/env node
import { takeSecrets } from '../src/daemon/secrets.ts';

// Before anything else is loaded: until then the process list shows the secret.
const secret = takeSecrets();
import('./sandboxd-options.ts').then(
  ({ main }) => main(process.argv, secret),
  (error: Error) => {
    process.stderr.write(`sandboxd: ${error.message.split('\n')[0]}\n`);
    process.exit(1);
  },
);
