import { spawnSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { DAEMON_ROUTES } from '../src/contract/routes/daemon.ts';
import { API_ROUTES } from '../src/contract/routes/manager.ts';
import { daemonDocument } from '../src/daemon/api/openapi.ts';
import { managerDocument } from '../src/manager/api/routes.ts';
import { EVENT_SCHEMAS } from '../src/receiver/event-schemas.ts';
import { EVENT_MODULES } from './event-modules.ts';
import { schemaTypesOf, typesOf } from './openapi-types/types.ts';
import { checkShown } from './shown-schemas.ts';

/**
 * The package's types, into `dist/types`: as the compiler makes them of the sources, with what the documents say in the place
 * of what is inferred from rows, which would need the library that schemas are written with.
 */
const SOURCES = ['client', 'contract', 'receiver', 'webhook'];
/** The folder that `types.json` names. */
const COPY = 'dist/typed';

checkShown(DAEMON_ROUTES);
checkShown(API_ROUTES);
const modules = {
  ...EVENT_MODULES,
  'client/openapi/daemon-api.ts': await typesOf(daemonDocument()),
  'client/openapi/manager-api.ts': await typesOf(managerDocument()),
  'receiver/event-types.ts': await schemaTypesOf(EVENT_SCHEMAS),
};
for (const folder of SOURCES) cpSync(`src/${folder}`, `${COPY}/${folder}`, { recursive: true });
for (const [path, text] of Object.entries(modules)) writeFileSync(`${COPY}/${path}`, text);
const { status } = spawnSync('node_modules/.bin/tsc', ['--project', '.build/types.json'], {
  stdio: 'inherit',
});
rmSync(COPY, { recursive: true });
if (status !== 0) process.exit(1);

/** The types of what CommonJS can `require`: the same files, in a folder that says so. */
cpSync('dist/types', 'dist/types-cjs', { recursive: true });
rmSync('dist/types-cjs/client', { recursive: true });
writeFileSync('dist/types-cjs/package.json', '{"type":"commonjs"}\n');
