import { Type } from 'typebox';
import { BURST_MIN_BYTES, SANDBOX_NETWORK_MODES } from '../../contract/network.ts';
import { TEMPLATE } from '../../contract/sandboxes.ts';
import { environmentOf } from '../../contract/schema/environment.ts';
import { namedObject, PlainText } from '../../contract/schema/field.ts';
import { integerFrom } from '../../contract/schema/query.ts';
import { RetryClass, SentKinds, WatchIgnore } from '../../contract/schema/webhook.ts';

/** The template of a claim that names none. */
export const DEFAULT_TEMPLATE = 'default';
/** Characters of a text of a webhook. */
export const TEXT_MAX = 4096;
/** A size of memory or disk in words; `requests.ts` checks it. */
export const SIZE_SHAPE = 'a size like 128Mi or 1Gi, from 128Mi to 2048Ti';
/** A hundred years. */
const DURATION_MAX_S = 100 * 366 * 24 * 60 * 60;
const BYTES_MAX = Number.MAX_SAFE_INTEGER;

const template_name = { pattern: TEMPLATE.source, description: '1 to 64 of A-Z a-z 0-9 _ - .' };
/** A template's name. */
export const TemplateName = Type.String(template_name);
/** A duration in whole seconds; 0 is off. */
export const Duration = integerFrom(0, DURATION_MAX_S);
/** Environment variables by name. */
const Variables = environmentOf(PlainText);
const Size = Type.String({ description: SIZE_SHAPE });
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

/** A claim's webhook. */
export const Webhook = namedObject('WebhookRequest', {
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
  retry: Type.Optional(RetryClass),
});

const Resources = namedObject('ResourcesRequest', {
  memory: Type.Optional(Size),
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

const ForkConfig = namedObject('ForkConfig', {
  ttl: Type.Optional(Duration),
  hard_ttl: Type.Optional(Duration),
  webhook: Type.Optional(Webhook),
});

/** The schema of a PUT of a sandbox. Source: contract section 7. */
export const ChangeBody = namedObject('ChangeSandboxRequest', {
  config: namedObject('ChangeConfig', {
    resources: Type.Optional(namedObject('ResourcesChange', { memory: Type.Optional(Size) })),
    env_vars: Type.Optional(Variables),
    ttl: Type.Optional(Duration),
    hard_ttl: Type.Optional(Duration),
    idle_ttl: Type.Optional(Duration),
    auto_resume: Type.Optional(Type.Boolean()),
    // Listed, so that the refusal says why.
    webhook: Type.Optional(Type.Unknown({ description: 'refused: can only be set at claim' })),
  }),
});

/** Whether the processes are kept. */
const Memory = Type.Boolean({ default: true, description: 'whether processes are kept' });

/** The schema of a fork's body; durations and webhook are the source's unless given. A fork is of the disk, whatever `memory` says. */
export const ForkBody = namedObject('ForkSandboxRequest', {
  config: Type.Optional(ForkConfig),
  memory: Type.Optional(Memory),
});

/** The schema of a refresh's body; `duration` in seconds. */
export const RefreshBody = namedObject('RefreshSandboxRequest', { duration: Type.Optional(Duration) });

/** The schema of a pause's or resume's body. */
export const SwitchBody = namedObject('SandboxSwitchRequest', {
  reason: Type.Optional(Type.String({ maxLength: 1024 })),
  memory: Type.Optional(Memory),
});
