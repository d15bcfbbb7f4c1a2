import { resolve } from 'node:path';
import type { Static } from 'typebox';
import { SANDBOX_SIZE_MIN_MIB } from '../../contract/defaults.ts';
import { invalidField } from '../../contract/errors.ts';
import {
  METADATA_MAX,
  mebibytes,
  millicores,
  SIZE_MAX_MIB,
  sizeText,
  VARIABLES_MAX_BYTES,
  WEBHOOK_TEXT_MAX,
} from '../../contract/limits.ts';
import type { NetworkState } from '../../contract/network.ts';
import {
  type ChangeBody,
  type ClaimBody,
  DEFAULT_TEMPLATE,
  type ForkBody,
  type SandboxBandwidth,
  type SandboxNetworkView,
  type SandboxResources,
  SIZE_SHAPE,
  type WebhookBody,
} from '../../contract/sandboxes.ts';
import type { RuntimeWebhook } from '../../runtime/runtime.ts';
import { type AddressGuard, checkWebhookUrl } from '../../webhook/address-guard.ts';
import { bandwidthOf, isLimited, NO_BANDWIDTH } from '../config/bandwidth.ts';
import { bodyHash } from './idempotency-store.ts';

const DEFAULT_MEMORY = '512Mi';
const DEFAULT_CPU = 0.1;
const NOT_METERED = 'is not enforced here: the network is not metered (--network host-unmetered)';

/** A validated claim with its defaults applied. */
export interface ClaimRequest {
  template: string;
  webhook: RuntimeWebhook | null;
  metadata: Record<string, string>;
  env_vars: Record<string, string> | null;
  /** Seconds; 0 is off. */
  ttl: number;
  hard_ttl: number;
  idle_ttl: number;
  auto_resume: boolean;
  resources: SandboxResources;
  memory_mib: number;
  cpu_millis: number;
  disk_mib: number;
  bandwidth: SandboxBandwidth;
  network: SandboxNetworkView;
  /** SHA-256 of the body: equal claims have equal hashes. */
  hash: string;
}

/** What claims are checked by and completed with. */
export interface ClaimRules {
  guard: AddressGuard;
  /** The bandwidth of a claim without one. */
  bandwidth: SandboxBandwidth;
  /** The disk of a claim without one, by its memory. */
  diskFor(memory_mib: number): number;
  /** How the network of sandboxes works now. */
  network(): NetworkState;
  /** The resources of a claim of a template without any. Throws `invalid_request` for an unknown template. */
  resourcesOf(template: string): Partial<SandboxResources>;
}

/** Validates what the schema cannot express; throws `invalid_request` naming the field. */
export function claimRequest(body: Static<typeof ClaimBody> | undefined, rules: ClaimRules): ClaimRequest {
  const config = body?.config ?? {};
  checkVariables(config.env_vars ?? {});
  const template = body?.template ?? DEFAULT_TEMPLATE;
  const asked: Partial<SandboxResources> = { ...rules.resourcesOf(template), ...config.resources };
  const { memory = DEFAULT_MEMORY, cpu = DEFAULT_CPU } = asked;
  const memory_mib = memoryOf(memory);
  const { disk = sizeText(rules.diskFor(memory_mib)) } = asked;
  return {
    template,
    webhook: config.webhook ? webhookOf(config.webhook, rules.guard) : null,
    metadata: checkedMetadata(config.metadata ?? {}),
    env_vars: config.env_vars ?? null,
    ttl: config.ttl ?? 0,
    hard_ttl: config.hard_ttl ?? 0,
    idle_ttl: config.idle_ttl ?? 0,
    auto_resume: config.auto_resume ?? false,
    resources: { memory, cpu, disk },
    memory_mib,
    cpu_millis: cpuOf(cpu),
    disk_mib: sizeOf('config.resources.disk', disk),
    ...networkOf(config, rules),
    hash: bodyHash(body),
  };
}

/** A memory size in MiB, from 128 to 2³¹; throws `invalid_request` for anything else. */
function memoryOf(memory: string): number {
  return sizeOf('config.resources.memory', memory);
}

function sizeOf(field: string, text: string): number {
  const size_mib = mebibytes(text);
  if (size_mib !== null && size_mib >= SANDBOX_SIZE_MIN_MIB && size_mib <= SIZE_MAX_MIB) return size_mib;
  throw invalidField(field, `must be ${SIZE_SHAPE}`);
}

/** What is not enforced here is refused rather than recorded. */
function networkOf(
  { bandwidth = {}, network: asked }: NonNullable<Static<typeof ClaimBody>['config']>,
  rules: ClaimRules,
): Pick<ClaimRequest, 'bandwidth' | 'network'> {
  const state = rules.network();
  const mode = asked?.mode ?? 'allow-all';
  const network = { mode, enforced_by: mode === 'block-all' ? state.block_all : null };
  if (mode === 'block-all' && network.enforced_by === null) {
    throw invalidField('config.network.mode', NOT_METERED);
  }
  if (state.mode !== 'host-unmetered') return { bandwidth: bandwidthOf(bandwidth, rules.bandwidth), network };
  if (isLimited(bandwidthOf(bandwidth, NO_BANDWIDTH))) throw invalidField('config.bandwidth', NOT_METERED);
  return { bandwidth: NO_BANDWIDTH, network };
}

/** Throws `invalid_request` if environment variables take more than 64 KiB. */
function checkVariables(env_vars: Record<string, string>): void {
  const pairs = Object.entries(env_vars);
  const sizes_bytes = pairs.map(([name, value]) => Buffer.byteLength(name) + Buffer.byteLength(value) + 2);
  if (sizes_bytes.reduce((sum, each) => sum + each, 0) > VARIABLES_MAX_BYTES) {
    throw invalidField('config.env_vars', 'must not be larger than 64 KiB');
  }
}

function checkedMetadata(metadata: Record<string, string>): Record<string, string> {
  const pairs = Object.entries(metadata);
  if (pairs.length > METADATA_MAX) {
    throw invalidField('config.metadata', `must not have more than ${METADATA_MAX} entries`);
  }
  const bad = pairs.find(([, text]) => !text.isWellFormed());
  if (bad) throw invalidField(`config.metadata.${bad[0]}`, 'must be valid Unicode');
  return metadata;
}

function cpuOf(cpu: number | string): number {
  const millis = millicores(cpu);
  if (millis !== null) return millis;
  throw invalidField('config.resources.cpu', 'must be a number of cores like 0.5 or 2');
}

function webhookOf(webhook: Static<typeof WebhookBody>, guard: AddressGuard): RuntimeWebhook {
  const checked = checkWebhookUrl(webhook.url, guard);
  if ('fault' in checked) throw invalidField('config.webhook.url', checked.fault);
  // Encoding makes non-ASCII characters longer.
  if (checked.url.length > WEBHOOK_TEXT_MAX) {
    throw invalidField(
      'config.webhook.url',
      `must not be longer than ${WEBHOOK_TEXT_MAX} characters once encoded`,
    );
  }
  const { secret = '', watch_dir, watch_ignore = [], events = null, retry = 'transient' } = webhook;
  const folder = watch_dir === undefined ? null : resolve(watch_dir);
  return { url: checked.url, secret, watch_dir: folder, watch_ignore, events, retry };
}

/** A validated fork; what is undefined is the source's. Durations in seconds. */
export interface ForkRequest {
  ttl?: number | undefined;
  hard_ttl?: number | undefined;
  webhook?: RuntimeWebhook | undefined;
}

/** Validates what the schema cannot express; throws `invalid_request` naming the field. */
export function forkRequest(
  body: Static<typeof ForkBody> | undefined,
  { guard }: Pick<ClaimRules, 'guard'>,
): ForkRequest {
  const { webhook, ...durations } = body?.config ?? {};
  return { ...durations, ...(webhook && { webhook: webhookOf(webhook, guard) }) };
}

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
