import { SANDBOX_SIZE_MIN_MIB } from '../../contract/defaults.ts';
import { EVENT_TYPES, type EventType } from '../../contract/events.ts';
import { TEMPLATE } from '../../contract/ids.ts';
import {
  DURATION_MAX_S,
  GLOB_MAX_LENGTH,
  GLOB_PATTERN,
  GLOBS_MAX,
  METADATA_KEY_PATTERN,
  METADATA_KEY_SHAPE,
  METADATA_MAX,
  METADATA_TEXT_MAX,
  mebibytes,
  millicores,
  SIZE_MAX_MIB,
  VARIABLES_MAX_BYTES,
  WEBHOOK_TEXT_MAX,
} from '../../contract/limits.ts';
import type { SandboxNetworkMode } from '../../contract/network.ts';
import type { ClaimBody } from '../api/managed-sandbox.ts';

/** What is typed into the form of a claim. */
export interface ClaimForm {
  template: string;
  webhook_url: string;
  webhook_secret: string;
  watch_dir: string;
  watch_ignore: string;
  events: readonly EventType[];
  /** Whether every status but 2xx and 410 is tried again. */
  retries_any: boolean;
  metadata: string;
  env_vars: string;
  ttl: string;
  hard_ttl: string;
  idle_ttl: string;
  auto_resume: boolean;
  memory: string;
  cpu: string;
  disk: string;
  egress: string;
  ingress: string;
  burst: string;
  network: string;
}

/** An empty form: everything as the manager defaults it. */
export const EMPTY_CLAIM: ClaimForm = {
  template: '',
  webhook_url: '',
  webhook_secret: '',
  watch_dir: '',
  watch_ignore: '',
  events: EVENT_TYPES,
  retries_any: false,
  metadata: '',
  env_vars: '',
  ttl: '',
  hard_ttl: '',
  idle_ttl: '',
  auto_resume: false,
  memory: '',
  cpu: '',
  disk: '',
  egress: '',
  ingress: '',
  burst: '',
  network: '',
};

/** What is wrong with a form, by field. */
export type Faults = Partial<Record<keyof ClaimForm, string>>;

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 };
const DURATION = 'must be like 90s, 30m, 2h or 7d; 0 is off';
const SIZE_PROBLEM = 'must be like 256Mi or 1Gi, from 128Mi to 2048Ti';
const GLOB = new RegExp(GLOB_PATTERN);
const METADATA_KEY = new RegExp(METADATA_KEY_PATTERN);

/** A typed duration in whole seconds; null where nothing is typed. */
export function durationOf(text: string): { seconds: number | null; wrong: string | null } {
  const typed = text.trim();
  if (typed === '') return { seconds: null, wrong: null };
  const [, digits, unit = 's'] = /^(\d+)\s*([smhd])?$/.exec(typed) ?? [];
  if (digits === undefined) return { seconds: null, wrong: DURATION };
  const seconds = Number(digits) * (SECONDS[unit] as number);
  return seconds <= DURATION_MAX_S ? { seconds, wrong: null } : { seconds: null, wrong: 'at most 100 years' };
}

/** Pairs from lines like `name=value`; lines that are empty are passed over. */
export function pairsOf(
  text: string,
  separator: '=' | ':',
): { pairs: Record<string, string>; wrong: string | null } {
  const pairs: Record<string, string> = Object.create(null);
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const at = line.indexOf(separator);
    const name = line.slice(0, at).trim();
    if (at < 1 || name === '')
      return { pairs, wrong: `each line must be name${separator}value: ${line.slice(0, 40)}` };
    pairs[name] = separator === ':' ? line.slice(at + 1).trim() : line.slice(at + 1);
  }
  return { pairs, wrong: null };
}

/** The body of the claim, and what the manager would refuse in it. Contract section 7, `POST /api/v1/sandboxes`. */
export function claimOf(form: ClaimForm): { body: ClaimBody; faults: Faults } {
  const faults: Faults = {};
  const config = {
    ...webhookOf(form, faults),
    ...metadataOf(form, faults),
    ...variablesOf(form, faults),
    ...durationsOf(form, faults),
    ...(form.auto_resume ? { auto_resume: true } : {}),
    ...resourcesOf(form, faults),
    ...bandwidthOf(form, faults),
    ...(form.network === '' ? {} : { network: { mode: form.network as SandboxNetworkMode } }),
  };
  const template = form.template.trim();
  if (template !== '' && !TEMPLATE.test(template)) faults.template = 'must be 1 to 64 of A-Z a-z 0-9 _ - .';
  return { body: { ...(template === '' ? {} : { template }), config }, faults };
}

function webhookOf(form: ClaimForm, faults: Faults) {
  const url = form.webhook_url.trim();
  const too_long = `at most ${WEBHOOK_TEXT_MAX} characters`;
  const { webhook_secret: secret, watch_dir, watch_ignore, events, retries_any } = form;
  if (url === '') {
    if (secret !== '' || watch_dir !== '' || watch_ignore.trim() !== '')
      faults.webhook_url = 'is required for these';
    return {};
  }
  if (url.length > WEBHOOK_TEXT_MAX) faults.webhook_url = too_long;
  if (secret.length > WEBHOOK_TEXT_MAX) faults.webhook_secret = too_long;
  if (watch_dir.length > WEBHOOK_TEXT_MAX) faults.watch_dir = too_long;
  if (!isWebhookUrl(url)) faults.webhook_url = 'must be http or https, without user and password';
  if (watch_dir !== '' && !watch_dir.startsWith('/')) faults.watch_dir = 'must be an absolute path';
  if (events.length === 0) faults.events = 'at least one kind must be sent';
  const globs = watch_ignore.split('\n').filter((line) => line.trim() !== '');
  const glob = globs.find((each) => each.length > GLOB_MAX_LENGTH || !GLOB.test(each));
  if (globs.length > GLOBS_MAX) faults.watch_ignore = `at most ${GLOBS_MAX} globs`;
  if (glob !== undefined)
    faults.watch_ignore = `is no glob of 1 to ${GLOB_MAX_LENGTH} characters: ${glob.slice(0, 40)}`;
  return {
    webhook: {
      url,
      ...(secret === '' ? {} : { secret }),
      ...(watch_dir === '' ? {} : { watch_dir }),
      ...(globs.length === 0 ? {} : { watch_ignore: globs }),
      ...(events.length === EVENT_TYPES.length ? {} : { events: [...events] }),
      ...(retries_any ? { retry: 'any' as const } : {}),
    },
  };
}

function isWebhookUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
}

function metadataOf({ metadata }: ClaimForm, faults: Faults) {
  const { pairs, wrong } = pairsOf(metadata, ':');
  const entries = Object.entries(pairs);
  const key = entries.find(([name]) => !METADATA_KEY.test(name));
  const long = entries.find(([, text]) => text.length > METADATA_TEXT_MAX);
  if (wrong) faults.metadata = wrong;
  else if (key) faults.metadata = `${key[0].slice(0, 40)}: a key is ${METADATA_KEY_SHAPE}`;
  else if (long) faults.metadata = `${long[0]}: a text has at most ${METADATA_TEXT_MAX} characters`;
  else if (entries.length > METADATA_MAX) faults.metadata = `at most ${METADATA_MAX} pairs`;
  return entries.length === 0 ? {} : { metadata: pairs };
}

function variablesOf({ env_vars }: ClaimForm, faults: Faults) {
  const { pairs, wrong } = environmentOf(env_vars);
  if (wrong) faults.env_vars = wrong;
  return Object.keys(pairs).length === 0 ? {} : { env_vars: pairs };
}

/** Environment variables from lines like `NAME=value`, each of which counts with its `=` and its end. */
export function environmentOf(text: string): ReturnType<typeof pairsOf> {
  const { pairs, wrong } = pairsOf(text, '=');
  const size = new TextEncoder().encode(Object.entries(pairs).flat().join('')).length;
  const is_long = size + 2 * Object.keys(pairs).length > VARIABLES_MAX_BYTES;
  return { pairs, wrong: wrong ?? (is_long ? 'at most 64 KiB of names and values' : null) };
}

/** What is wrong with a size of memory or disk; null where nothing is. */
export function sizeProblem(text: string): string | null {
  const size_mib = mebibytes(text) ?? 0;
  return size_mib >= SANDBOX_SIZE_MIN_MIB && size_mib <= SIZE_MAX_MIB ? null : SIZE_PROBLEM;
}

function durationsOf(form: ClaimForm, faults: Faults) {
  const given: Record<string, number> = {};
  for (const name of ['ttl', 'hard_ttl', 'idle_ttl'] as const) {
    const { seconds, wrong } = durationOf(form[name]);
    if (wrong) faults[name] = wrong;
    if (seconds !== null) given[name] = seconds;
  }
  return given;
}

function resourcesOf(form: ClaimForm, faults: Faults) {
  const [memory, cpu, disk] = [form.memory.trim(), form.cpu.trim(), form.disk.trim()];
  const [bad_memory, bad_disk] = [memory, disk].map((each) => (each === '' ? null : sizeProblem(each)));
  if (bad_memory) faults.memory = bad_memory;
  if (bad_disk) faults.disk = bad_disk;
  if (cpu !== '' && millicores(cpu) === null) faults.cpu = 'must be a number of cores like 0.5 or 2';
  if (memory === '' && cpu === '' && disk === '') return {};
  const resources = {
    ...(memory === '' ? {} : { memory }),
    ...(cpu === '' ? {} : { cpu: Number(cpu) }),
    ...(disk === '' ? {} : { disk }),
  };
  return { resources };
}

const BANDWIDTH = {
  egress: 'egress_bandwidth_bytes_per_second',
  ingress: 'ingress_bandwidth_bytes_per_second',
  burst: 'bandwidth_burst_bytes',
} as const;

function bandwidthOf(form: ClaimForm, faults: Faults) {
  const bandwidth: Record<string, number> = {};
  for (const [name, key] of Object.entries(BANDWIDTH) as [keyof typeof BANDWIDTH, string][]) {
    const text = form[name].trim();
    if (text === '') continue;
    const value = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) faults[name] = 'must be a whole number of bytes';
    bandwidth[key] = value;
  }
  return Object.keys(bandwidth).length === 0 ? {} : { bandwidth };
}
