import type { ManagedSandbox } from '../../contract/sandboxes.ts';
import type { ManagerContext } from '../context.ts';
import { EXIT, type ExitCode, Failure } from '../failure.ts';
import { moment } from '../terminal/quantity.ts';
import { selectedSandbox } from './sandbox-id.ts';

/** How long the manager may take for a change, in ms: it copies disks, and waits for deliveries. */
export const CHANGE_TIMEOUT_MS = 5 * 60 * 1_000;

/** Pauses or resumes a sandbox, without `memory` ending its processes. Contract section 7, `POST /api/v1/sandboxes/{id}/pause`. */
export async function setPaused(
  context: ManagerContext,
  verb: 'pause' | 'resume',
  given: string | undefined,
  memory: boolean,
): Promise<ExitCode> {
  const id = await selectedSandbox(context, given);
  // A manager of before knows no such field.
  const answer = await post<{ memory?: boolean }>(
    context,
    `/sandboxes/${id}/${verb}`,
    memory ? {} : { memory },
  );
  const kept = answer.memory === false ? '; its processes have ended' : '';
  await print(context, answer, `${id} ${verb === 'pause' ? 'is paused' : 'is running'}${kept}`);
  return EXIT.ok;
}

/** Copies a sandbox and prints the copy's id; durations in seconds. Contract section 7, `POST /api/v1/sandboxes/{id}/fork`. */
export async function fork(
  context: ManagerContext,
  given: string | undefined,
  config: { ttl?: number | undefined; hard_ttl?: number | undefined; webhook?: object | undefined },
): Promise<ExitCode> {
  const id = await selectedSandbox(context, given);
  const answer = await post<{ sandbox: ManagedSandbox }>(context, `/sandboxes/${id}/fork`, { config });
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
  const answer = await post<{ expires_at: string | null }>(context, `/sandboxes/${id}/refresh`, { duration });
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
  if (ids.length > 1) for (const id of ids) await context.client.call('GET', `/sandboxes/${id}`);
  for (const id of ids) {
    const answer = await context.client.call<object>('DELETE', `/sandboxes/${id}`, {
      silence_timeout_ms: CHANGE_TIMEOUT_MS,
    });
    await print(context, { sandbox_id: id, ...answer }, `${id} is being deleted`);
  }
  return EXIT.ok;
}

/** A duration in ms as whole seconds; a usage error for any other. */
export function seconds(option: string, ms: number | undefined): number | undefined {
  if (ms === undefined || ms % 1_000 === 0) return ms === undefined ? undefined : ms / 1_000;
  throw new Failure(EXIT.usage, `${option} must be whole seconds`);
}

function post<Data>({ client }: ManagerContext, path: string, body: object = {}): Promise<Data> {
  return client.call('POST', path, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    silence_timeout_ms: CHANGE_TIMEOUT_MS,
  });
}

function print({ out, json }: ManagerContext, answer: object, text: string): Promise<void> {
  return out.line(json ? JSON.stringify(answer) : text);
}
