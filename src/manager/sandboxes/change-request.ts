import { type Static, Type } from 'typebox';
import { invalidField } from '../../contract/errors.ts';
import { checkedVariables, Duration, Memory, memoryOf, Variables } from './claim-request.ts';

const closed = { additionalProperties: false };

const Durations = Type.Object({ ttl: Type.Optional(Duration), hard_ttl: Type.Optional(Duration) }, closed);

export const ChangeBody = Type.Object(
  {
    config: Type.Object(
      {
        resources: Type.Optional(Type.Object({ memory: Type.Optional(Memory) }, closed)),
        env_vars: Type.Optional(Variables),
        ttl: Type.Optional(Duration),
        hard_ttl: Type.Optional(Duration),
        auto_resume: Type.Optional(Type.Boolean()),
        // SandboxRef, so that whoever tries is told why.
        webhook: Type.Optional(Type.Unknown({ description: 'refused: it is set at claim only' })),
      },
      closed,
    ),
  },
  closed,
);

export const ForkBody = Type.Object({ config: Type.Optional(Durations) }, closed);

export const RefreshBody = Type.Object({ duration: Type.Optional(Duration) }, closed);

export const ReasonBody = Type.Object({ reason: Type.Optional(Type.String({ maxLength: 1024 })) }, closed);

/** A change, checked; what is undefined stays as it is. */
export interface ChangeRequest {
  memory?: string;
  memory_mib?: number;
  env_vars?: Record<string, string>;
  /** Seconds; 0 is off. */
  ttl?: number;
  hard_ttl?: number;
  auto_resume?: boolean;
}

/** Checks what the schema cannot say; throws `invalid_request` with the field named. */
export function changeRequest({ config }: Static<typeof ChangeBody>): ChangeRequest {
  const { resources, env_vars, webhook, ...rest } = config;
  if (webhook !== undefined) throw invalidField('config.webhook', 'is set at claim only');
  const memory = resources?.memory;
  return {
    ...rest,
    ...(memory === undefined ? {} : { memory, memory_mib: memoryOf(memory) }),
    ...(env_vars === undefined ? {} : { env_vars: checkedVariables(env_vars) }),
  };
}
