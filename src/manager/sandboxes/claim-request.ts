import { resolve } from 'node:path';
import { type Static, Type } from 'typebox';
import { invalidField } from '../../contract/errors.ts';
import { type SandboxResources, TEMPLATE } from '../../contract/sandboxes.ts';
import { closedObject, environmentOf, PlainText } from '../../contract/schema/field.ts';
import { integerFrom } from '../../contract/schema/query.ts';
import { type AddressGuard, checkWebhookUrl } from '../../webhook/address-guard.ts';
import { mebibytes, millicores } from '../config/quantity.ts';
import { bodyHash } from './idempotency-store.ts';

const DEFAULT_TEMPLATE = 'default';
const DEFAULT_MEMORY = '512Mi';
const DEFAULT_CPU = 0.1;
const MEMORY_MIN_MIB = 128;
/** 2 PiB: one hour of it in MiB × ms is still an exact integer in JSON. */
const MEMORY_MAX_MIB = 2 ** 31;
/** A hundred years. */
const DURATION_MAX_S = 100 * 366 * 24 * 60 * 60;
const TEXT_MAX = 4096;
/** Of all names and values, each pair with its `=` and NUL. */
const VARIABLES_MAX_BYTES = 64 * 1024;
const BANDWIDTH_MAX = Number.MAX_SAFE_INTEGER;

const template_name = { pattern: TEMPLATE.source, description: '1 to 64 of A-Z a-z 0-9 _ - .' };
/** The schema of a template's name. */
export const TemplateName = Type.String(template_name);
/** The schema of a duration in whole seconds; 0 is off. */
export const Duration = integerFrom(0, DURATION_MAX_S);
/** The schema of environment variables by name. */
export const Variables = environmentOf(PlainText);
const MEMORY_SHAPE = 'a size like 128Mi or 1Gi, from 128Mi to 2048Ti';
/** The schema of a memory size; see `memoryOf`. */
export const Memory = Type.String({ description: MEMORY_SHAPE });

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
const Bandwidth = integerFrom(0, BANDWIDTH_MAX);

/** The schema of a claim. Source: contract section 7, POST `/api/v1/sandboxes`. */
export const ClaimBody = closedObject({
  template: Type.Optional(Type.String({ ...template_name, default: DEFAULT_TEMPLATE })),
  config: Type.Optional(
    closedObject({
      webhook: Type.Optional(
        closedObject({
          url: Type.String({ maxLength: TEXT_MAX }),
          secret: Type.Optional(Type.String({ maxLength: TEXT_MAX })),
          watch_dir: Type.Optional(
            Type.String({
              maxLength: TEXT_MAX,
              pattern: '^/[^\\u0000]*$',
              description: `an absolute path of at most ${TEXT_MAX} characters`,
            }),
          ),
        }),
      ),
      metadata: Type.Optional(Metadata),
      env_vars: Type.Optional(Variables),
      ttl: Type.Optional(Duration),
      hard_ttl: Type.Optional(Duration),
      auto_resume: Type.Optional(Type.Boolean({ default: false })),
      resources: Type.Optional(closedObject({ memory: Type.Optional(Memory), cpu: Type.Optional(Cpu) })),
      network: Type.Optional(
        closedObject({
          egress_bandwidth_bytes_per_second: Type.Optional(Bandwidth),
          ingress_bandwidth_bytes_per_second: Type.Optional(Bandwidth),
          bandwidth_burst_bytes: Type.Optional(Bandwidth),
        }),
      ),
    }),
  ),
});

/** A validated claim with its defaults applied. */
export interface ClaimRequest {
  template: string;
  webhook: { url: string; secret: string; watch_dir: string | null } | null;
  metadata: Record<string, string>;
  env_vars: Record<string, string> | null;
  /** Seconds; 0 is off. */
  ttl: number;
  hard_ttl: number;
  auto_resume: boolean;
  resources: SandboxResources;
  memory_mib: number;
  cpu_millis: number;
  network: object | null;
  /** SHA-256 of the body: equal claims have equal hashes. */
  hash: string;
}

/** Validates what the schema cannot express; throws `invalid_request` naming the field. */
export function claimRequest(body: Static<typeof ClaimBody> | undefined, guard: AddressGuard): ClaimRequest {
  const config = body?.config ?? {};
  checkVariables(config.env_vars ?? {});
  const memory = config.resources?.memory ?? DEFAULT_MEMORY;
  const cpu = config.resources?.cpu ?? DEFAULT_CPU;
  return {
    template: body?.template ?? DEFAULT_TEMPLATE,
    webhook: config.webhook ? webhookOf(config.webhook, guard) : null,
    metadata: checkedMetadata(config.metadata ?? {}),
    env_vars: config.env_vars ?? null,
    ttl: config.ttl ?? 0,
    hard_ttl: config.hard_ttl ?? 0,
    auto_resume: config.auto_resume ?? false,
    resources: { memory, cpu },
    memory_mib: memoryOf(memory),
    cpu_millis: cpuOf(cpu),
    network: config.network ?? null,
    hash: bodyHash(body),
  };
}

/** A memory size in MiB, from 128 to 2³¹; throws `invalid_request` for anything else. */
export function memoryOf(memory: string): number {
  const size_mib = mebibytes(memory);
  if (size_mib !== null && size_mib >= MEMORY_MIN_MIB && size_mib <= MEMORY_MAX_MIB) return size_mib;
  throw invalidField('config.resources.memory', `must be ${MEMORY_SHAPE}`);
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

function webhookOf(webhook: { url: string; secret?: string; watch_dir?: string }, guard: AddressGuard) {
  const checked = checkWebhookUrl(webhook.url, guard);
  if ('fault' in checked) throw invalidField('config.webhook.url', checked.fault);
  // Encoding makes non-ASCII characters longer.
  if (checked.url.length > TEXT_MAX) {
    throw invalidField('config.webhook.url', `must not be longer than ${TEXT_MAX} characters once encoded`);
  }
  const { watch_dir = null, secret = '' } = webhook;
  return { url: checked.url, secret, watch_dir: watch_dir === null ? null : resolve(watch_dir) };
}

/** The wall time in ms at which `duration_s` seconds from `now_ms` are over; null if the duration is 0 (off). */
export function after(now_ms: number, duration_s: number): number | null {
  return duration_s === 0 ? null : now_ms + duration_s * 1000;
}
