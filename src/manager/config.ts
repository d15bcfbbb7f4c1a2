import { resolve } from 'node:path';
import { LOG_LEVELS, type LogLevel } from '../base/log.ts';
import { StartError } from '../contract/errors.ts';
import { type Cidr, parseCidr } from '../webhook/address.ts';
import { mebibytes, millicores } from './quantity.ts';

export const RUNTIMES = ['local', 'local-unsafe', 'none'] as const;

/** What a node has to give; null where it is what the machine has. */
export interface NodeBudget {
  readonly memory_mib: number | null;
  readonly cpu_millis: number | null;
  readonly sandboxes: number | null;
  readonly disk_mib: number | null;
}

/** Everything that a manager is started with; parsed once and never changed. Source: contract section 7. */
export interface ManagerConfig {
  readonly host: string;
  readonly port: number;
  /** `sqlite:<path>` or `postgres://…`. */
  readonly database: string;
  /** `redis://…`, or null where rate state is in process. */
  readonly redis: string | null;
  readonly runtime: (typeof RUNTIMES)[number];
  readonly data_dir: string;
  readonly region: string;
  readonly replicas: number;
  readonly metering: boolean;
  readonly quota_fail_open: boolean;
  /** Addresses that webhooks may reach although they are not public. */
  readonly allow_webhook_cidr: Cidr[];
  readonly secret_key_file: string;
  readonly node: NodeBudget;
  readonly log_level: LogLevel;
  /** As the config file has them, undefined where it has none; whoever owns quotas checks them. */
  readonly quotas: Readonly<Record<QuotaKey, unknown>>;
}

/** One option as the command line shows it; its name in the config file and the environment is `name`. */
export interface OptionDefinition {
  name: string;
  /** What stands for its value in the help; null for a switch. */
  value: string | null;
  description: string;
  is_list?: boolean;
}

export const OPTIONS = [
  { name: 'listen', value: 'address', description: 'host and port (default: 127.0.0.1:8080)' },
  {
    name: 'database',
    value: 'url',
    description: 'sqlite:<path> (default: ./sandbox-manager.db) or postgres://…',
  },
  { name: 'redis', value: 'url', description: 'rate quotas shared by the replicas' },
  { name: 'runtime', value: 'kind', description: `${RUNTIMES.join(', ')} (default: local)` },
  {
    name: 'data_dir',
    value: 'dir',
    description: 'rootfs and state of local sandboxes (default: ./sandbox-manager-data)',
  },
  { name: 'region', value: 'name', description: 'name of the region (default: local)' },
  { name: 'replicas', value: 'n', description: 'how many managers share the database (default: 1)' },
  { name: 'metering', value: 'on|off', description: 'record usage (default: on)' },
  { name: 'quota_fail_open', value: null, description: 'admit while the rate authority cannot be reached' },
  {
    name: 'allow_webhook_cidr',
    value: 'cidr',
    description: 'addresses that webhooks may reach although they are not public; repeatable',
    is_list: true,
  },
  {
    name: 'secret_key_file',
    value: 'path',
    description: 'seals secrets in the database; made where missing (default: ./sandbox-manager.key)',
  },
  { name: 'node_memory', value: 'size', description: 'memory for sandboxes, like 8Gi' },
  { name: 'node_cpus', value: 'cores', description: 'cores for sandboxes, like 3.5' },
  { name: 'node_sandboxes', value: 'n', description: 'sandboxes that run at once' },
  { name: 'node_disk', value: 'size', description: 'disk of --data-dir for sandboxes, like 50Gi' },
  { name: 'log_level', value: 'level', description: 'of the JSON log on stderr (default: info)' },
] as const satisfies OptionDefinition[];

export type OptionName = (typeof OPTIONS)[number]['name'];

const QUOTA_KEYS = [
  'default_team_quotas',
  'team_egress_bandwidth_bytes_per_second',
  'team_ingress_bandwidth_bytes_per_second',
  'team_bandwidth_burst_bytes',
] as const;

/** Keys that stand in the config file alone. */
export type QuotaKey = (typeof QUOTA_KEYS)[number];

/** What one place gives: texts, lists of them for repeatable options, `true` or a text for switches. */
export type Given = Partial<Record<string, unknown>>;

/**
 * Puts together what the command line, the environment and the config file give; the first of them wins. Throws
 * StartError with the option's name and exit code 2 where something does not fit.
 */
export function managerConfig(command_line: Given, environment: Given, file: Given): ManagerConfig {
  const known: readonly string[] = [...OPTIONS.map(({ name }) => name), ...QUOTA_KEYS];
  const unknown = Object.keys(file).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new StartError(`--config: ${unknown} is not known`, 2);
  const from = new Source({ ...file, ...environment, ...command_line });
  const [host, port] = from.read('listen', '127.0.0.1:8080', address, 'must be <host>:<port>');
  const config: ManagerConfig = {
    host,
    port,
    database: from.read('database', 'sqlite:./sandbox-manager.db', databaseUrl, DATABASE),
    redis: from.optional('redis', redisUrl, 'must be a redis:// or rediss:// URL'),
    runtime: from.read('runtime', 'local', oneOf(RUNTIMES), `must be one of ${RUNTIMES.join(', ')}`),
    data_dir: from.read('data_dir', './sandbox-manager-data', path, 'must not be empty'),
    region: from.read('region', 'local', label, 'must be 1 to 64 of A-Z a-z 0-9 _ - .'),
    replicas: from.read('replicas', '1', wholeNumber(1, 1_000), 'must be a whole number from 1 to 1000'),
    metering: from.read('metering', 'on', onOff, 'must be on or off'),
    quota_fail_open: from.read('quota_fail_open', 'false', onOff, 'must be true or false'),
    allow_webhook_cidr: from.list(
      'allow_webhook_cidr',
      parseCidr,
      'must be ranges of addresses like 10.0.0.0/8',
    ),
    secret_key_file: from.read('secret_key_file', './sandbox-manager.key', path, 'must not be empty'),
    node: {
      memory_mib: from.optional('node_memory', mebibytes, SIZE),
      cpu_millis: from.optional('node_cpus', millicores, 'must be a number of cores, like 3.5'),
      sandboxes: from.optional('node_sandboxes', wholeNumber(1, 1_000_000), 'must be a whole number from 1'),
      disk_mib: from.optional('node_disk', mebibytes, SIZE),
    },
    log_level: from.read('log_level', 'info', oneOf(LOG_LEVELS), `must be one of ${LOG_LEVELS.join(', ')}`),
    quotas: Object.fromEntries(QUOTA_KEYS.map((key) => [key, file[key]])) as Record<QuotaKey, unknown>,
  };
  checkTogether(config);
  return Object.freeze(config);
}

const DATABASE = 'must be sqlite:<path> or postgres://…';
const SIZE = 'must be a size like 512Mi or 8Gi';

function checkTogether(config: ManagerConfig): void {
  if (config.replicas === 1) return;
  if (config.redis === null) throw badOption('redis', 'is needed with --replicas above 1');
  if (config.database.startsWith('sqlite:')) {
    throw badOption('database', 'must be postgres://… with --replicas above 1');
  }
}

/** Values by option, all of them texts to begin with. */
class Source {
  readonly #given: Given;

  constructor(given: Given) {
    this.#given = given;
  }

  read<Value>(
    name: OptionName,
    standard: string,
    parse: (text: string) => Value | null,
    accepted: string,
  ): Value {
    const text = this.#text(name) ?? standard;
    const value = parse(text);
    if (value === null) throw badOption(name, accepted);
    return value;
  }

  optional<Value>(name: OptionName, parse: (text: string) => Value | null, accepted: string): Value | null {
    return this.#text(name) === null ? null : this.read(name, '', parse, accepted);
  }

  list<Value>(name: OptionName, parse: (text: string) => Value | null, accepted: string): Value[] {
    const value = this.#given[name] ?? [];
    const texts = typeof value === 'string' ? value.split(/[\s,]+/).filter(Boolean) : value;
    if (!Array.isArray(texts)) throw badOption(name, accepted);
    return texts.map((text) => {
      const entry = parse(String(text));
      if (entry === null) throw badOption(name, accepted);
      return entry;
    });
  }

  #text(name: OptionName): string | null {
    const value = this.#given[name];
    if (value === undefined || value === null) return null;
    if (typeof value === 'object') throw badOption(name, 'must be a single value');
    return String(value);
  }
}

function databaseUrl(text: string): string | null {
  const file = /^sqlite:(.+)$/.exec(text)?.[1];
  if (file !== undefined) return `sqlite:${resolve(file)}`;
  return /^postgres(ql)?:\/\//.test(text) && URL.canParse(text) ? text : null;
}

function redisUrl(text: string): string | null {
  return /^rediss?:\/\//.test(text) && URL.canParse(text) ? text : null;
}

function address(text: string): [host: string, port: number] | null {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host === undefined || port > 65_535 ? null : [host, port];
}

function path(text: string): string | null {
  return text === '' ? null : resolve(text);
}

function label(text: string): string | null {
  return /^[A-Za-z0-9_.-]{1,64}$/.test(text) ? text : null;
}

function onOff(text: string): boolean | null {
  if (/^(1|true|yes|on)$/i.test(text)) return true;
  return /^(0|false|no|off)$/i.test(text) ? false : null;
}

function oneOf<Value extends string>(values: readonly Value[]): (text: string) => Value | null {
  return (text) => values.find((value) => value === text) ?? null;
}

function wholeNumber(min: number, max: number): (text: string) => number | null {
  return (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return number >= min && number <= max ? number : null;
  };
}

function badOption(name: OptionName, message: string): StartError {
  return new StartError(`--${name.replaceAll('_', '-')} ${message}`, 2);
}
