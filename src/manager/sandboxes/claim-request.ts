import { resolve } from 'node:path';
import { type Static, Type } from 'typebox';
import { invalidField } from '../../contract/errors.ts';
import {
  BURST_MIN_BYTES,
  type NetworkState,
  SANDBOX_NETWORK_MODES,
  type SandboxBandwidth,
  type SandboxNetworkView,
} from '../../contract/network.ts';
import { type SandboxResources, TEMPLATE } from '../../contract/sandboxes.ts';
import { environmentOf, namedObject, PlainText } from '../../contract/schema/field.ts';
import { integerFrom } from '../../contract/schema/query.ts';
import { SentKinds, WatchIgnore } from '../../contract/schema/webhook.ts';
import type { RuntimeWebhook } from '../../runtime/runtime.ts';
import { type AddressGuard, checkWebhookUrl } from '../../webhook/address-guard.ts';
import { bandwidthOf, isLimited, NO_BANDWIDTH } from '../config/bandwidth.ts';
import { mebibytes, millicores, sizeText } from '../config/quantity.ts';
import { bodyHash } from './idempotency-store.ts';

const DEFAULT_TEMPLATE = 'default';
const DEFAULT_MEMORY = '512Mi';
const DEFAULT_CPU = 0.1;
/** Of memory and of disk, where the daemon's outbox needs room too. */
const SIZE_MIN_MIB = 128;
/** 2 PiB: one hour of it in MiB × ms is still an exact integer in JSON. */
const SIZE_MAX_MIB = 2 ** 31;
/** A hundred years. */
const DURATION_MAX_S = 100 * 366 * 24 * 60 * 60;
const TEXT_MAX = 4096;
/** Of all names and values, each pair with its `=` and NUL. */
const VARIABLES_MAX_BYTES = 64 * 1024;
const BYTES_MAX = Number.MAX_SAFE_INTEGER;

const template_name = { pattern: TEMPLATE.source, description: '1 to 64 of A-Z a-z 0-9 _ - .' };
/** The schema of a template's name. */
export const TemplateName = Type.String(template_name);
/** The schema of a duration in whole seconds; 0 is off. */
export const Duration = integerFrom(0, DURATION_MAX_S);
/** The schema of environment variables by name. */
export const Variables = environmentOf(PlainText);
const SIZE_SHAPE = 'a size like 128Mi or 1Gi, from 128Mi to 2048Ti';
const Size = Type.String({ description: SIZE_SHAPE });
/** The schema of a memory size; see `memoryOf`. */
export const Memory = Size;

const METADATA_MAX = 32;
const MetadataText = Type.String({
  maxLength: 256,
  pattern: '^[^\\u0000]*$',
  description: 'a string of at most 256 characters without NUL',
});
/** Labels of a sandbox: texts by key. */
const Metadata = Type.Unsafe<Record<string, string>>({
  type: 'object',
  propertyNames: { pattern: '^[A-Za-z0-9_./-]{1,63}$', description: '1 to 63 of A-Z a-z 0-9 _ - . /' },
  additionalProperties: MetadataText,
});
const Cpu = Type.Union([Type.Number(), Type.String()], { description: 'cores, like 0.5 or 2' });
const Bytes = integerFrom(0, BYTES_MAX);
const Burst = Type.Integer({
  minimum: 0,
  maximum: BYTES_MAX,
  description: `0 is one second of the rate; values below ${BURST_MIN_BYTES} are raised to ${BURST_MIN_BYTES}`,
});

const NOT_METERED = 'is not enforced here: the network is not metered (--network host-unmetered)';

const Webhook = namedObject('WebhookRequest', {
  url: Type.String({ maxLength: TEXT_MAX }),
  secret: Type.Optional(Type.String({ maxLength: TEXT_MAX })),
  watch_dir: Type.Optional(
    Type.String({
      maxLength: TEXT_MAX,
      pattern: '^/[^\\u0000]*$',
      description: `an absolute path of at most ${TEXT_MAX} characters`,
    }),
  ),
  watch_ignore: Type.Optional(WatchIgnore),
  events: Type.Optional(SentKinds),
});

const Resources = namedObject('ResourcesRequest', {
  memory: Type.Optional(Memory),
  cpu: Type.Optional(Cpu),
  disk: Type.Optional(Size),
});
const Bandwidth = namedObject('BandwidthRequest', {
  egress_bandwidth_bytes_per_second: Type.Optional(Bytes),
  ingress_bandwidth_bytes_per_second: Type.Optional(Bytes),
  bandwidth_burst_bytes: Type.Optional(Burst),
});
const Network = namedObject('NetworkRequest', {
  mode: Type.Optional(Type.Enum(SANDBOX_NETWORK_MODES, { default: 'allow-all' })),
});

/** The schema of a claim. Source: contract section 7, POST `/api/v1/sandboxes`. */
export const ClaimBody = namedObject('ClaimSandboxRequest', {
  template: Type.Optional(Type.String({ ...template_name, default: DEFAULT_TEMPLATE })),
  config: Type.Optional(
    namedObject('ClaimConfig', {
      webhook: Type.Optional(Webhook),
      metadata: Type.Optional(Metadata),
      env_vars: Type.Optional(Variables),
      ttl: Type.Optional(Duration),
      hard_ttl: Type.Optional(Duration),
      idle_ttl: Type.Optional(Duration),
      auto_resume: Type.Optional(Type.Boolean({ default: false })),
      resources: Type.Optional(Resources),
      bandwidth: Type.Optional(Bandwidth),
      network: Type.Optional(Network),
    }),
  ),
});

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
export function memoryOf(memory: string): number {
  return sizeOf('config.resources.memory', memory);
}

function sizeOf(field: string, text: string): number {
  const size_mib = mebibytes(text);
  if (size_mib !== null && size_mib >= SIZE_MIN_MIB && size_mib <= SIZE_MAX_MIB) return size_mib;
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
export function checkVariables(env_vars: Record<string, string>): void {
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

function webhookOf(webhook: Static<typeof Webhook>, guard: AddressGuard): RuntimeWebhook {
  const checked = checkWebhookUrl(webhook.url, guard);
  if ('fault' in checked) throw invalidField('config.webhook.url', checked.fault);
  // Encoding makes non-ASCII characters longer.
  if (checked.url.length > TEXT_MAX) {
    throw invalidField('config.webhook.url', `must not be longer than ${TEXT_MAX} characters once encoded`);
  }
  const { secret = '', watch_dir, watch_ignore = [], events = null } = webhook;
  const folder = watch_dir === undefined ? null : resolve(watch_dir);
  return { url: checked.url, secret, watch_dir: folder, watch_ignore, events };
}

/** The wall time in ms at which `duration_s` seconds from `now_ms` are over; null if the duration is 0 (off). */
export function after(now_ms: number, duration_s: number): number | null {
  return duration_s === 0 ? null : now_ms + duration_s * 1000;
}

/** What a resume sets anew: the times that count while a sandbox runs. */
export function timesOfResume({ ttl_s, idle_ttl_s }: { ttl_s: number; idle_ttl_s: number }, now_ms: number) {
  return { expires_at_ms: after(now_ms, ttl_s), idle_expires_at_ms: after(now_ms, idle_ttl_s) };
}
