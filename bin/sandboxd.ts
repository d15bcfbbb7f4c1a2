#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8';
import { takeSecrets } from '../src/daemon/secrets.ts';

// Before anything else is loaded: until then the process list shows the secret.
const secret = takeSecrets();
// Records pass through and are gone: a heap that is collected early stays a third of the size, for no more CPU.
setFlagsFromString('--optimize-for-size');
import('./sandboxd-options.ts').then(
  ({ main }) => main(process.argv, secret),
  (error: Error) => {
    process.stderr.write(`sandboxd: ${error.message.split('\n')[0]}\n`);
    process.exit(1);
  },
);
