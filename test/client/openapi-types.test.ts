import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Type } from 'typebox';
import { expect, it } from 'vitest';
import { schemaTypesOf, typesOf } from '../../.build/openapi-types/types.ts';
import { checkShown } from '../../.build/shown-schemas.ts';
import { closedObject, namedObject, Text } from '../../src/contract/field.ts';
import type { Route } from '../../src/contract/routes/route.ts';
import { daemonDocument } from '../../src/daemon/api/openapi.ts';
import { managerDocument } from '../../src/manager/api/routes.ts';
import { EVENT_SCHEMAS } from '../../src/receiver/event-schemas.ts';
import { startDaemon } from '../support/daemon/running-daemon.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { scratchFolder } from '../support/scratch.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PUBLISHED = '../published';

const printed = (document: unknown) => `${JSON.stringify(document, null, 1)}\n`;

it('the documents that the programs serve are as published (else: npm run published)', async () => {
  const { manager } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`);
  const { call } = await startDaemon('--webhook-url', 'http://127.0.0.1:9/');
  const of_manager = await (await fetch(`${manager.url}/openapi.json`)).json();
  const { json: of_daemon } = await call('GET', '/openapi.json', { token: null });
  await expect(printed(of_manager)).toMatchFileSnapshot(`${PUBLISHED}/manager-openapi.json`);
  await expect(printed(of_daemon)).toMatchFileSnapshot(`${PUBLISHED}/daemon-openapi.json`);
});

/**
 * Names every call, and every event, that has other types where they are made of the documents than where they are inferred
 * from rows. What a document of OpenAPI is, is in no document.
 */
const COMPARISON = `
import type { paths as DaemonRows } from '${ROOT}src/client/openapi/daemon-api.ts';
import type { paths as ManagerRows } from '${ROOT}src/client/openapi/manager-api.ts';
import type { AnswerOf, CallOptions, InitOf, RawBody } from '${ROOT}src/client/routes.ts';
import type { components } from '${ROOT}src/receiver/event-types.ts';
import type { paths as Daemon } from './daemon-api.ts';
import type { components as Events } from './event-types.ts';
import type { paths as Manager } from './manager-api.ts';

type Plain<Type> = Type extends RawBody | Response ? Type
  : Type extends object ? { [Key in keyof Type]: Plain<Type[Key]> } : Type;
type Same<One, Other> =
  (<T>() => T extends Plain<One> ? 1 : 2) extends (<T>() => T extends Plain<Other> ? 1 : 2) ? true : false;
type Call<Paths, Path, Method> = {
  init: Omit<InitOf<Paths, Path, Method>, keyof CallOptions>;
  answer: AnswerOf<Paths, Path, Method>;
};
type Calls<Paths> = {
  [Path in keyof Paths & string]: \`\${keyof Paths[Path] & string} \${Path}\`;
}[keyof Paths & string];
type Differing<One, Other> = {
  [Each in Calls<One> | Calls<Other>]: Each extends \`\${infer Method} \${infer Path}\`
    ? Each extends Calls<One> & Calls<Other>
      ? Same<Call<One, Path, Method>, Call<Other, Path, Method>> extends true ? never : Each
      : Each
    : never;
}[Calls<One> | Calls<Other>];
type Kinds = keyof components['schemas'] | keyof Events['schemas'];
type None<_Type extends never> = true;

export type Compared = [
  None<Exclude<Differing<Daemon, DaemonRows>, 'get /openapi.json'>>,
  None<Exclude<Differing<Manager, ManagerRows>, 'get /openapi.json'>>,
  None<{ [Kind in Kinds]: Same<components['schemas'][Kind], Events['schemas'][Kind]> extends true ? never : Kind }[Kinds]>,
];
`;

/** What the compiler says of the comparison with these types of the documents. */
function compared(types: Readonly<Record<string, string>>): string {
  const folder = scratchFolder();
  for (const [name, text] of Object.entries(types)) writeFileSync(join(folder, name), text);
  const compilerOptions = { typeRoots: [join(ROOT, 'node_modules/@types')] };
  const settings = { extends: join(ROOT, 'tsconfig.json'), compilerOptions, files: ['comparison.ts'] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...settings, include: [], exclude: [] }));
  writeFileSync(join(folder, 'comparison.ts'), COMPARISON);
  const { stdout } = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), ['--project', folder], {
    encoding: 'utf8',
  });
  return stdout;
}

it('the types inferred from rows are those of the documents, of which the package is made', async () => {
  const types = {
    'daemon-api.ts': await typesOf(daemonDocument()),
    'manager-api.ts': await typesOf(managerDocument()),
    'event-types.ts': await schemaTypesOf(EVENT_SCHEMAS),
  };
  expect(compared(types)).toBe('');
  const other = (name: keyof typeof types, from: string, to: string) => {
    expect(types[name]).toContain(from);
    return compared({ ...types, [name]: types[name].replace(from, to) });
  };
  expect(other('daemon-api.ts', 'tail_lines?: number', 'tail_lines: number')).toContain(
    `Type '"get /api/v1/processes/{process_id}/output"' does not satisfy`,
  );
  expect(other('manager-api.ts', '"/api/v1/node": {', '"/api/v1/nodes": {')).toContain('get /api/v1/node');
  expect(other('event-types.ts', 'http_port: number', 'http_port?: number')).toContain('sandbox.ready');
});

it('a schema that documents cannot show stops the build by name', () => {
  const row: Route = { method: 'POST', path: '/', tag: 'events', summary: '' };
  const list = Type.Array(namedObject('Entry', { at: Type.Optional(Type.BigInt()) }));
  const cases: [Partial<Route>, string][] = [
    [{ data: closedObject({ list }) }, 'data.list[].at: no type of JSON is bigint'],
    [{ body: closedObject({ when: Type.Refine(Text, () => false) }) }, 'body.when: ~refine is code'],
    [{ query: Type.Union([Text, Type.Tuple([Text])]) }, 'query: a tuple'],
    [{ content: Type.Record(Text, Type.Ref('Other')) }, 'content[]: Other is no schema of the document'],
  ];
  for (const [part, problem] of cases) {
    expect(() => checkShown({ publish: { ...row, ...part } })).toThrow(
      `documents cannot show the schema of publish, ${problem}`,
    );
  }
  expect(() =>
    checkShown({ publish: { ...row, body: closedObject({ list: Type.Array(Text) }) } }),
  ).not.toThrow();
});
