import type { SandboxRecord } from '../../client/manager-client.ts';
import type { paths } from '../../client/openapi/manager-api.ts';
import type { AnswerOf, InitOf } from '../../client/routes.ts';

/** A sandbox of a manager. */
export type ManagedSandbox = SandboxRecord;

/** A page of sandboxes; `count` is the number of all that match. */
export type SandboxPage = AnswerOf<paths, '/api/v1/sandboxes', 'get'>;

/** What a list of sandboxes is narrowed to. */
export type SandboxFilter = NonNullable<InitOf<paths, '/api/v1/sandboxes', 'get'>['query']>;

type BodyOf<Path extends keyof paths, Method> =
  InitOf<paths, Path, Method> extends { body?: infer Body } ? NonNullable<Body> : never;

/** A claim, as the API takes it. */
export type ClaimBody = BodyOf<'/api/v1/sandboxes', 'post'>;
/** A change of a sandbox. */
export type ChangeConfig = BodyOf<'/api/v1/sandboxes/{sandbox_id}', 'put'>['config'];
/** Durations of a fork, in seconds; what is left out is as in the sandbox that is copied. */
export type ForkConfig = NonNullable<BodyOf<'/api/v1/sandboxes/{sandbox_id}/fork', 'post'>['config']>;
