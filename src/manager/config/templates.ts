import { type Static, Type } from 'typebox';
import type { Given } from '../../base/options.ts';
import { problemOf } from '../../base/schema.ts';
import { EPHEMERAL_MIB, EPHEMERAL_WITH_ROOT_MIB } from '../../contract/defaults.ts';
import { StartError } from '../../contract/errors.ts';
import { closedObject } from '../../contract/field.ts';
import { mebibytes, millicores } from '../../contract/limits.ts';
import type { SandboxTemplates, TemplatePool } from '../../contract/templates.ts';

/** The key of the config file that holds the templates. */
export const TEMPLATES_KEY = 'templates';

const SIZE_MIN_MIB = 128;
/** Less than what a node keeps of a container's output would end sandboxes that print. */
const EPHEMERAL_MIN_MIB = 64;
const USER_MAX = 65_535;
const POOL_MAX = 100;
/** Beyond what the ids of a user namespace reach, and below what accounts of an image begin with. */
const USER = 1_000;
const WORK_DIR = '/workspace';

const ObjectName = Type.String({
  pattern: '^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$',
  description: 'the name of an object of the cluster',
});
const Template = closedObject({
  image: Type.String({ pattern: '^[^\\s]{1,512}$', description: 'the name of an image' }),
  image_pull_secret: Type.Optional(ObjectName),
  runtime_class: Type.Optional(ObjectName),
  storage_class: Type.Optional(ObjectName),
  user: Type.Optional(Type.Integer({ minimum: 0, maximum: USER_MAX })),
  work_dir: Type.Optional(
    Type.String({ pattern: '^(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+$', description: 'an absolute path' }),
  ),
  user_namespace: Type.Optional(Type.Boolean()),
  persistent_root: Type.Optional(Type.Boolean()),
  ephemeral_storage: Type.Optional(Type.String()),
  resources: Type.Optional(
    closedObject({
      memory: Type.Optional(Type.String()),
      cpu: Type.Optional(Type.Union([Type.String(), Type.Number()])),
      disk: Type.Optional(Type.String()),
    }),
  ),
  pool: Type.Optional(Type.Integer({ minimum: 0, maximum: POOL_MAX })),
});
const Name = Type.String({ pattern: '^[A-Za-z0-9_.-]{1,64}$', description: '1 to 64 of A-Z a-z 0-9 _ - .' });
const Templates = Type.Record(Name, Template, { additionalProperties: false });

/** What the daemon and its programs need of the root: a folder of the sandbox there would hide it. */
const TAKEN =
  /^\/(opt\/sandboxd|run\/sandboxd|var\/lib\/sandboxd|bin|dev|etc|lib\d*|proc|sbin|sys|usr)(\/|$)/;

/** The templates of a config file; empty if it has none. Throws StartError with the path of what is wrong. */
export function configuredTemplates(file: Given): SandboxTemplates {
  const given = file[TEMPLATES_KEY] ?? {};
  const fail = (path: string, problem: string) =>
    new StartError(`--config: ${TEMPLATES_KEY}${path === '' ? '' : `.${path}`} ${problem}`, 2);
  const fault = problemOf(Templates, given);
  if (fault) throw fail(fault.field, fault.problem);
  const entries = Object.entries(given as Static<typeof Templates>).map(([name, template]) => {
    const { resources = {} } = template;
    for (const key of ['memory', 'disk'] as const) {
      const size = resources[key];
      if (size === undefined || (mebibytes(size) ?? 0) >= SIZE_MIN_MIB) continue;
      throw fail(`${name}.resources.${key}`, 'must be a size like 512Mi or 8Gi, of at least 128Mi');
    }
    if (resources.cpu !== undefined && millicores(resources.cpu) === null) {
      throw fail(`${name}.resources.cpu`, 'must be a number of cores, like 3.5');
    }
    const { work_dir = WORK_DIR, user_namespace = true, persistent_root = false } = template;
    const { user = persistent_root ? 0 : USER, ephemeral_storage } = template;
    const ephemeral_mib = ephemeral_storage === undefined ? null : (mebibytes(ephemeral_storage) ?? 0);
    if (ephemeral_mib !== null && ephemeral_mib < EPHEMERAL_MIN_MIB) {
      throw fail(`${name}.ephemeral_storage`, 'must be a size like 512Mi or 8Gi, of at least 64Mi');
    }
    if (persistent_root && !user_namespace) {
      throw fail(`${name}.persistent_root`, 'needs user_namespace, which is false');
    }
    // Nobody else may change the files of a system, and without capabilities nobody can hand files over.
    if (persistent_root && user !== 0) throw fail(`${name}.persistent_root`, 'needs the user 0');
    if (TAKEN.test(work_dir)) throw fail(`${name}.work_dir`, 'must not hide a part of the system');
    const made = {
      image: template.image,
      image_pull_secret: template.image_pull_secret ?? null,
      runtime_class: template.runtime_class ?? null,
      storage_class: template.storage_class ?? null,
      user,
      work_dir,
      user_namespace,
      persistent_root,
      ephemeral_mib: ephemeral_mib ?? (persistent_root ? EPHEMERAL_WITH_ROOT_MIB : EPHEMERAL_MIB),
      resources,
      pool: poolOf(template, (key, problem) => fail(`${name}.resources.${key}`, problem)),
    };
    return [name, made] as const;
  });
  return new Map(entries);
}

/** What waits has one size, which the template must say. `fail`: the error for one of its resources. */
function poolOf(
  { pool: size = 0, resources = {} }: Static<typeof Template>,
  fail: (key: string, problem: string) => StartError,
): TemplatePool | null {
  if (size === 0) return null;
  const { memory, cpu, disk } = resources;
  for (const [key, given] of Object.entries({ memory, cpu, disk })) {
    if (given === undefined) throw fail(key, 'is required with a pool');
  }
  return {
    size,
    memory_mib: mebibytes(memory as string) as number,
    cpu_millis: millicores(cpu as string | number) as number,
    disk_mib: mebibytes(disk as string) as number,
  };
}
