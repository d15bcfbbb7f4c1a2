import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import type { Claim } from '../../client/manager-client.ts';
import type { EventType } from '../../contract/events.ts';
import type { SandboxNetworkMode } from '../../contract/network.ts';
import type { WebhookRetry } from '../../contract/words.ts';
import { readSecretFile } from '../api/secret-file.ts';
import type { ManagerContext } from '../context.ts';
import { EXIT, type ExitCode, Failure, reason } from '../failure.ts';
import { CHANGE_TIMEOUT_MS, seconds } from './change.ts';

/** The webhook of a claim or fork. */
export interface WebhookOptions {
  webhookUrl?: string | undefined;
  webhookSecretFile?: string | undefined;
  watchDir?: string | undefined;
  watchIgnore?: string[] | undefined;
  webhookRetry?: WebhookRetry | undefined;
  /** The kinds of events that are sent. */
  event?: EventType[] | undefined;
}

/** What is claimed; durations are in ms, `cpu` in cores. What is undefined is left to the manager. */
export interface ClaimOptions extends WebhookOptions {
  template?: string | undefined;
  env?: Record<string, string> | undefined;
  envFrom?: string | undefined;
  metadata?: Record<string, string> | undefined;
  ttl?: number | undefined;
  hardTtl?: number | undefined;
  idleTtl?: number | undefined;
  autoResume?: boolean | undefined;
  memory?: string | undefined;
  cpu?: number | undefined;
  disk?: string | undefined;
  network?: SandboxNetworkMode | undefined;
  idempotencyKey?: string | undefined;
}

/** Claims a sandbox and prints its id. Contract section 7, `POST /api/v1/sandboxes`. */
export async function claim(
  { manager, out, json }: ManagerContext,
  options: ClaimOptions,
): Promise<ExitCode> {
  const { idempotencyKey } = options;
  const claimed = await manager.POST('/api/v1/sandboxes', {
    headers: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
    body: claimBody(options),
    timeout_ms: CHANGE_TIMEOUT_MS,
  });
  await out.line(json ? JSON.stringify(claimed) : claimed.sandbox_id);
  return EXIT.ok;
}

/** The body of the claim; its secret and the variables of `--env-from` are read from their files. */
function claimBody(options: ClaimOptions): Claim {
  const { template, metadata, autoResume: auto_resume, ttl, hardTtl, idleTtl, network } = options;
  const { memory, cpu, disk } = options;
  return {
    template,
    config: {
      webhook: webhookOf(options),
      metadata,
      env_vars: variablesOf(options),
      ttl: seconds('--ttl', ttl),
      hard_ttl: seconds('--hard-ttl', hardTtl),
      idle_ttl: seconds('--idle-ttl', idleTtl),
      auto_resume,
      resources: (memory ?? cpu ?? disk) === undefined ? undefined : { memory, cpu, disk },
      network: network && { mode: network },
    },
  };
}

/** The webhook as the manager takes it, its secret read from its file; undefined where none is given. Throws `Failure`. */
export function webhookOf(options: WebhookOptions) {
  const {
    webhookUrl: url,
    webhookSecretFile,
    watchDir: watch_dir,
    watchIgnore,
    event,
    webhookRetry,
  } = options;
  if (url !== undefined) {
    const secret = webhookSecretFile === undefined ? undefined : readSecretFile(webhookSecretFile);
    return { url, secret, watch_dir, watch_ignore: watchIgnore, events: event, retry: webhookRetry };
  }
  const extra = Object.entries({
    '--webhook-secret-file': webhookSecretFile,
    '--watch-dir': watch_dir,
    '--watch-ignore': watchIgnore,
    '--event': event,
    '--webhook-retry': webhookRetry,
  }).find(([, value]) => value !== undefined);
  if (extra) throw new Failure(EXIT.usage, `${extra[0]} needs --webhook-url`);
  return undefined;
}

function variablesOf({ env, envFrom }: ClaimOptions): Record<string, string> | undefined {
  if (envFrom === undefined) return env;
  try {
    return { ...(parseEnv(readFileSync(envFrom, 'utf8')) as Record<string, string>), ...env };
  } catch (error) {
    throw new Failure(EXIT.usage, `cannot read ${envFrom}: ${reason(error)}`);
  }
}
