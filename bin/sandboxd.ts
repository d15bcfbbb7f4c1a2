#!/usr/bin/env node
import { takeSecrets } from '../src/daemon/secrets.ts';

// Before anything else is loaded: until then the process list shows the secret.
const secret = takeSecrets();
void import('./sandboxd-options.ts').then(({ main }) => main(process.argv, secret));
