import { LOG_LEVELS, type LogLevel } from '../../base/log.ts';
import { StartError } from '../../contract/errors.ts';
import { type Cidr, parseCidr } from '../../webhook/address.ts';
import {
  address,
  badOption,
  choiceOf,
  databaseUrl,
  integerBetween,
  label,
  OptionValues,
  onOff,
  path,
  redisUrl,
} from './option-values.ts';
import { type Given, OPTIONS, RUNTIMES } from './options.ts';
import { mebibytes, millicores } from './quantity.ts';

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

const QUOTA_KEYS = [
  'default_team_quotas',
  'team_egress_bandwidth_bytes_per_second',
  'team_ingress_bandwidth_bytes_per_second',
  'team_bandwidth_burst_bytes',
] as const;

/** Keys that stand in the config file alone. */
export type QuotaKey = (typeof QUOTA_KEYS)[number];

/**
 * Puts together what the command line, the environment and the config file give; the first of them wins. Throws
 * StartError with the option's name and exit code 2 where something does not fit.
 */
export function managerConfig(command_line: Given, environment: Given, file: Given): ManagerConfig {
  const known: readonly string[] = [...OPTIONS.map(({ name }) => name), ...QUOTA_KEYS];
  const unknown = Object.keys(file).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new StartError(`--config: ${unknown} is not known`, 2);
  const from = new OptionValues({ ...file, ...environment, ...command_line });
  const [host, port] = from.read('listen', '127.0.0.1:8080', address, 'must be <host>:<port>');
  const config: ManagerConfig = {
    host,
    port,
    database: from.read('database', 'sqlite:./sandbox-manager.db', databaseUrl, DATABASE),
    redis: from.optional('redis', redisUrl, 'must be a redis:// or rediss:// URL'),
    runtime: from.read('runtime', 'local', choiceOf(RUNTIMES), `must be one of ${RUNTIMES.join(', ')}`),
    data_dir: from.read('data_dir', './sandbox-manager-data', path, 'must not be empty'),
    region: from.read('region', 'local', label, 'must be 1 to 64 of A-Z a-z 0-9 _ - .'),
    replicas: from.read('replicas', '1', integerBetween(1, 1_000), 'must be a whole number from 1 to 1000'),
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
      sandboxes: from.optional(
        'node_sandboxes',
        integerBetween(1, 1_000_000),
        'must be a whole number from 1',
      ),
      disk_mib: from.optional('node_disk', mebibytes, SIZE),
    },
    log_level: from.read(
      'log_level',
      'info',
      choiceOf(LOG_LEVELS),
      `must be one of ${LOG_LEVELS.join(', ')}`,
    ),
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
