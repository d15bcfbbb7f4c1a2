import type { paths as ManagerPaths } from '../../client/openapi/manager-api.ts';
import type { InitOf } from '../../client/routes.ts';
import type { ManagerContext } from '../context.ts';
import { EXIT, type ExitCode, Failure } from '../failure.ts';
import { moment } from '../terminal/quantity.ts';
import { selectedSandbox } from './sandbox-id.ts';

/** How long the manager may take for a change, in ms: it copies disks, and waits for deliveries. */
export const CHANGE_TIMEOUT_MS = 5 * 60 * 1_000;

const SANDBOX = '/api/v1/sandboxes/{sandbox_id}';

/** What a copy has of its own. */
type ForkConfig = NonNullable<InitOf<ManagerPaths, `${typeof SANDBOX}/fork`, 'post'>['body']>['config'];

/** Pauses or resumes a sandbox, without `memory` ending its processes. Contract section 7, `POST /api/v1/sandboxes/{id}/pause`. */
export async function setPaused(
  context: ManagerContext,
  verb: 'pause' | 'resume',
  given: string | undefined,
  memory: boolean,
): Promise<ExitCode> {
  const id = await selectedSandbox(context, given);
  // A manager of before knows no such field.
  const answer = await context.manager.POST(`/api/v1/sandboxes/{sandbox_id}/${verb}`, {
    path: { sandbox_id: id },
    body: memory ? {} : { memory },
    timeout_ms: CHANGE_TIMEOUT_MS,
  });
  const kept = answer.memory === false ? '; its processes have ended' : '';
  await print(context, answer, `${id} ${verb === 'pause' ? 'is paused' : 'is running'}${kept}`);
  return EXIT.ok;
}

/** Copies a sandbox and prints the copy's id; durations in seconds. Contract section 7, `POST /api/v1/sandboxes/{id}/fork`. */
export async function fork(
  context: ManagerContext,
  given: string | undefined,
  config: ForkConfig,
): Promise<ExitCode> {
  const id = await selectedSandbox(context, given);
  const answer = await context.manager.POST('/api/v1/sandboxes/{sandbox_id}/fork', {
    path: { sandbox_id: id },
    body: { config },
    timeout_ms: CHANGE_TIMEOUT_MS,
  });
  await print(context, answer, answer.sandbox.id);
  return EXIT.ok;
}

/** Restarts a sandbox's ttl; `duration` in seconds. Contract section 7, `POST /api/v1/sandboxes/{id}/refresh`. */
export async function refresh(
  context: ManagerContext,
  given: string | undefined,
  duration?: number,
): Promise<ExitCode> {
  const id = await selectedSandbox(context, given);
  const answer = await context.manager.POST('/api/v1/sandboxes/{sandbox_id}/refresh', {
    path: { sandbox_id: id },
    body: { duration },
    timeout_ms: CHANGE_TIMEOUT_MS,
  });
  const { expires_at } = answer;
  await print(
    context,
    answer,
    `${id} ${expires_at === null ? 'has no ttl' : `expires at ${moment(expires_at)}`}`,
  );
  return EXIT.ok;
}

/** Deletes sandboxes, which must be named. Contract section 7, `DELETE /api/v1/sandboxes/{id}`. */
export async function deleteSandboxes(context: ManagerContext, given: readonly string[]): Promise<ExitCode> {
  if (given.length === 0) {
    throw new Failure(EXIT.usage, 'sandbox delete wants the ids, or --sandbox ID');
  }
  const ids: string[] = [];
  // One that is unclear must not be found out about when others are gone.
  for (const each of given) ids.push(await selectedSandbox(context, each));
  const { manager } = context;
  if (ids.length > 1) for (const sandbox_id of ids) await manager.GET(SANDBOX, { path: { sandbox_id } });
  for (const id of ids) {
    const call = { path: { sandbox_id: id }, timeout_ms: CHANGE_TIMEOUT_MS };
    const answer: object = await manager.DELETE(SANDBOX, call);
    await print(context, { sandbox_id: id, ...answer }, `${id} is being deleted`);
  }
  return EXIT.ok;
}

/** A duration in ms as whole seconds; a usage error for any other. */
export function seconds(option: string, ms: number | undefined): number | undefined {
  if (ms === undefined || ms % 1_000 === 0) return ms === undefined ? undefined : ms / 1_000;
  throw new Failure(EXIT.usage, `${option} must be whole seconds`);
}

function print({ out, json }: ManagerContext, answer: object, text: string): Promise<void> {
  return out.line(json ? JSON.stringify(answer) : text);
}
