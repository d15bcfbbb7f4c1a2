import { type Static, Type } from 'typebox';
import { invalidField } from '../../contract/errors.ts';
import { namedObject } from '../../contract/schema/field.ts';
import { checkVariables, Duration, Memory, memoryOf, Variables } from './claim-request.ts';

const Durations = namedObject('ForkConfig', {
  ttl: Type.Optional(Duration),
  hard_ttl: Type.Optional(Duration),
});

/** The schema of a PUT of a sandbox. Source: contract section 7. */
export const ChangeBody = namedObject('ChangeSandboxRequest', {
  config: namedObject('ChangeConfig', {
    resources: Type.Optional(namedObject('ResourcesChange', { memory: Type.Optional(Memory) })),
    env_vars: Type.Optional(Variables),
    ttl: Type.Optional(Duration),
    hard_ttl: Type.Optional(Duration),
    idle_ttl: Type.Optional(Duration),
    auto_resume: Type.Optional(Type.Boolean()),
    // Listed, so that the refusal says why.
    webhook: Type.Optional(Type.Unknown({ description: 'refused: can only be set at claim' })),
  }),
});

/** The schema of a fork's body; durations are the source's unless given. */
export const ForkBody = namedObject('ForkSandboxRequest', { config: Type.Optional(Durations) });

/** The schema of a refresh's body; `duration` in seconds. */
export const RefreshBody = namedObject('RefreshSandboxRequest', { duration: Type.Optional(Duration) });

/** The schema of a pause's or resume's body. */
export const ReasonBody = namedObject('SandboxReason', {
  reason: Type.Optional(Type.String({ maxLength: 1024 })),
});

/** A validated change; fields that are undefined are left as they are. */
export interface ChangeRequest {
  memory?: string;
  memory_mib?: number;
  env_vars?: Record<string, string>;
  /** Seconds; 0 is off. */
  ttl?: number;
  hard_ttl?: number;
  idle_ttl?: number;
  auto_resume?: boolean;
}

/** Validates what the schema cannot express; throws `invalid_request` naming the field. */
export function changeRequest({ config }: Static<typeof ChangeBody>): ChangeRequest {
  const { resources, env_vars, webhook, ...rest } = config;
  if (webhook !== undefined) throw invalidField('config.webhook', 'can only be set at claim');
  const memory = resources?.memory;
  checkVariables(env_vars ?? {});
  return {
    ...rest,
    ...(memory === undefined ? {} : { memory, memory_mib: memoryOf(memory) }),
    ...(env_vars === undefined ? {} : { env_vars }),
  };
}
