import { resolve } from 'node:path';
import { type Static, Type } from 'typebox';
import { invalidField } from '../../contract/errors.ts';
import { type SandboxResources, TEMPLATE } from '../../contract/sandboxes.ts';
import { type AddressGuard, checkWebhookUrl } from '../../webhook/address-guard.ts';
import { mebibytes, millicores } from '../config/quantity.ts';
import { bodyHash } from './idempotency-store.ts';

const closed = { additionalProperties: false };

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
export const Duration = Type.Integer({ minimum: 0, maximum: DURATION_MAX_S });
/** The schema of environment variables by name. */
export const Variables = Type.Record(Type.String(), Type.String());
/** The schema of a memory size; see `memoryOf`. */
export const Memory = Type.String({ description: 'like 128Mi or 1Gi, at least 128Mi' });

const Cpu = Type.Union([Type.Number(), Type.String()], { description: 'cores, like 0.5 or 2' });
const Bandwidth = Type.Integer({ minimum: 0, maximum: BANDWIDTH_MAX });

/** The schema of a claim. Source: contract section 7, POST `/api/v1/sandboxes`. */
export const ClaimBody = Type.Object(
  {
    template: Type.Optional(Type.String({ ...template_name, default: DEFAULT_TEMPLATE })),
    config: Type.Optional(
      Type.Object(
        {
          webhook: Type.Optional(
            Type.Object(
              {
                url: Type.String({ maxLength: TEXT_MAX }),
                secret: Type.Optional(Type.String({ maxLength: TEXT_MAX })),
                watch_dir: Type.Optional(Type.String({ maxLength: TEXT_MAX })),
              },
              closed,
            ),
          ),
          env_vars: Type.Optional(Variables),
          ttl: Type.Optional(Duration),
          hard_ttl: Type.Optional(Duration),
          auto_resume: Type.Optional(Type.Boolean({ default: false })),
          resources: Type.Optional(
            Type.Object({ memory: Type.Optional(Memory), cpu: Type.Optional(Cpu) }, closed),
          ),
          network: Type.Optional(
            Type.Object(
              {
                egress_bandwidth_bytes_per_second: Type.Optional(Bandwidth),
                ingress_bandwidth_bytes_per_second: Type.Optional(Bandwidth),
                bandwidth_burst_bytes: Type.Optional(Bandwidth),
              },
              closed,
            ),
          ),
        },
        closed,
      ),
    ),
  },
  closed,
);

/** A validated claim with its defaults applied. */
export interface ClaimRequest {
  template: string;
  webhook: { url: string; secret: string; watch_dir: string | null } | null;
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
  const memory = config.resources?.memory ?? DEFAULT_MEMORY;
  const cpu = config.resources?.cpu ?? DEFAULT_CPU;
  return {
    template: body?.template ?? DEFAULT_TEMPLATE,
    webhook: config.webhook ? webhookOf(config.webhook, guard) : null,
    env_vars: config.env_vars ? checkedVariables(config.env_vars) : null,
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
  throw invalidField('config.resources.memory', 'must be a size like 128Mi or 1Gi, from 128Mi to 2048Ti');
}

/** Validates environment variables; throws `invalid_request` for a bad name or value, or more than 64 KiB. */
export function checkedVariables(env_vars: Record<string, string>): Record<string, string> {
  let size_bytes = 0;
  for (const [name, value] of Object.entries(env_vars)) {
    if (name === '' || /[=\0]/.test(name)) {
      throw invalidField('config.env_vars', 'names must not be empty or contain = or NUL');
    }
    if (value.includes('\0')) throw invalidField(`config.env_vars.${name}`, 'must not contain NUL');
    size_bytes += Buffer.byteLength(name) + Buffer.byteLength(value) + 2;
  }
  if (size_bytes > VARIABLES_MAX_BYTES) throw invalidField('config.env_vars', 'must not exceed 64 KiB');
  return env_vars;
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
  if (watch_dir !== null && (!watch_dir.startsWith('/') || watch_dir.includes('\0'))) {
    throw invalidField('config.webhook.watch_dir', 'must be an absolute path');
  }
  return { url: checked.url, secret, watch_dir: watch_dir === null ? null : resolve(watch_dir) };
}

/** The wall time in ms at which `duration_s` seconds from `now_ms` are over; null if the duration is 0 (off). */
export function after(now_ms: number, duration_s: number): number | null {
  return duration_s === 0 ? null : now_ms + duration_s * 1000;
}
