#!/usr/bin/env -S node --disable-sigusr1
import { refuseInspector } from '../src/base/engine/inspector.ts';
import { closeInherited } from '../src/base/linux/inherited-descriptors.ts';
import { restoreNodeVariables } from '../src/base/node-variables.ts';
import { takeSecrets } from '../src/daemon/secrets.ts';

refuseInspector();
// Its processes would get them.
closeInherited([...process.argv, ...Object.values(process.env)]);

// Runs before anything else is loaded: until then the process list shows the secret.
const secret = takeSecrets();
import('./sandboxd-options.ts').then(
  ({ runSandboxd }) => runSandboxd(process.argv, secret, restoreNodeVariables(process.env)),
  (error: Error) => {
    process.stderr.write(`sandboxd: ${error.message.split('\n')[0]}\n`);
    process.exit(1);
  },
);
