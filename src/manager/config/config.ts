import { closestTo } from '../../base/closest.ts';
import { LOG_LEVELS, type LogLevel } from '../../base/log.ts';
import {
  badOption,
  choiceOption,
  FILLED_OPTION,
  type Given,
  integerOption,
  OptionValues,
  SWITCH_OPTION,
} from '../../base/options.ts';
import { StartError } from '../../contract/errors.ts';
import { NETWORK_OPTIONS, type NetworkOption, type SandboxBandwidth } from '../../contract/network.ts';
import { INJECTIONS, type InjectionOption, RUNTIMES, type RuntimeKind } from '../../contract/runtimes.ts';
import type { SandboxTemplates } from '../../contract/templates.ts';
import type { Cidr } from '../../webhook/address.ts';
import { BANDWIDTH_KEYS, defaultBandwidth } from './bandwidth.ts';
import {
  CIDRS,
  CORES,
  DATABASE_URL,
  FILE_PATH,
  LABEL,
  LISTEN_ADDRESS,
  NAMESPACE,
  REDIS_URL,
  SIZE,
} from './option-values.ts';
import { OPTIONS, type OptionName } from './options.ts';
import { configuredTemplates, TEMPLATES_KEY } from './templates.ts';

/** The limits of a node for sandboxes; null: what the machine has. */
export interface NodeBudget {
  readonly memory_mib: number | null;
  readonly cpu_millis: number | null;
  readonly sandboxes: number | null;
  readonly disk_mib: number | null;
}

/** The configuration of a manager; parsed once and frozen. Source: contract section 7. */
export interface ManagerConfig {
  readonly host: string;
  readonly port: number;
  /** `sqlite:<path>` or `postgres://…`. */
  readonly database: string;
  /** `redis://…`, or null if rate state is kept in this process. */
  readonly redis: string | null;
  readonly runtime: RuntimeKind;
  readonly network: NetworkOption;
  /** The bandwidth of every sandbox whose claim does not say otherwise. */
  readonly bandwidth: SandboxBandwidth;
  readonly data_dir: string;
  readonly region: string;
  readonly replicas: number;
  readonly metering: boolean;
  readonly quota_fail_open: boolean;
  /** Non-public addresses that webhooks may reach. */
  readonly allow_webhook_cidr: Cidr[];
  /** Non-public addresses that sandboxes may reach. */
  readonly allow_sandbox_cidr: Cidr[];
  readonly secret_key_file: string;
  /** Whether the console's page is served. */
  readonly console: boolean;
  readonly node: NodeBudget;
  /** Null: the service account of the Pod that this runs in. */
  readonly kubeconfig: string | null;
  /** Null: that of the access to the cluster. */
  readonly kubernetes_namespace: string | null;
  /** The image of this release; only `--runtime kubernetes` needs one. */
  readonly kubernetes_image: string | null;
  readonly kubernetes_injection: InjectionOption;
  readonly templates: SandboxTemplates;
  readonly log_level: LogLevel;
  /** As in the config file, undefined if missing; validated in `quotas/`. */
  readonly quotas: Readonly<Record<QuotaKey, unknown>>;
}

const QUOTA_KEYS = [
  'default_team_quotas',
  'team_egress_bandwidth_bytes_per_second',
  'team_ingress_bandwidth_bytes_per_second',
  'team_bandwidth_burst_bytes',
] as const;

/** Keys of quotas, which only the config file can set. */
export type QuotaKey = (typeof QUOTA_KEYS)[number];

/**
 * Merges command line, environment and config file, in this order of precedence. Throws StartError with the option's name
 * and exit code 2 for an unknown key or an invalid value.
 */
export function managerConfig(command_line: Given, environment: Given, file: Given): ManagerConfig {
  const known: readonly string[] = [
    ...OPTIONS.map(({ name }) => name),
    ...QUOTA_KEYS,
    ...BANDWIDTH_KEYS,
    TEMPLATES_KEY,
  ];
  const unknown = Object.keys(file).find((key) => !known.includes(key));
  if (unknown !== undefined) throw unknownKey(unknown, known);
  const from = new OptionValues<OptionName>(command_line, environment, file);
  const [host, port] = from.read('listen', '127.0.0.1:8080', LISTEN_ADDRESS);
  const config: ManagerConfig = {
    host,
    port,
    database: from.read('database', 'sqlite:./sandbox-manager.db', DATABASE_URL),
    redis: from.optional('redis', REDIS_URL),
    runtime: from.read('runtime', 'local', choiceOption(RUNTIMES)),
    network: from.read('network', 'auto', choiceOption(NETWORK_OPTIONS)),
    bandwidth: defaultBandwidth(file),
    data_dir: from.read('data_dir', './sandbox-manager-data', FILE_PATH),
    region: from.read('region', 'local', LABEL),
    replicas: from.read('replicas', '1', integerOption(1, 1_000)),
    metering: from.read('metering', 'on', { ...SWITCH_OPTION, accepted: 'must be on or off' }),
    quota_fail_open: from.read('quota_fail_open', 'false', SWITCH_OPTION),
    allow_webhook_cidr: from.list('allow_webhook_cidr', CIDRS),
    allow_sandbox_cidr: from.list('allow_sandbox_cidr', CIDRS),
    console: from.read('console', 'on', { ...SWITCH_OPTION, accepted: 'must be on or off' }),
    secret_key_file: from.read('secret_key_file', './sandbox-manager.key', FILE_PATH),
    node: {
      memory_mib: from.optional('node_memory', SIZE),
      cpu_millis: from.optional('node_cpus', CORES),
      sandboxes: from.optional('node_sandboxes', integerOption(1, 1_000_000)),
      disk_mib: from.optional('node_disk', SIZE),
    },
    kubeconfig: from.optional('kubeconfig', FILE_PATH),
    kubernetes_namespace: from.optional('kubernetes_namespace', NAMESPACE),
    kubernetes_image: from.optional('kubernetes_image', FILLED_OPTION),
    kubernetes_injection: from.read('kubernetes_injection', 'auto', choiceOption(INJECTIONS)),
    templates: configuredTemplates(file),
    log_level: from.read('log_level', 'info', choiceOption(LOG_LEVELS)),
    quotas: Object.fromEntries(QUOTA_KEYS.map((key) => [key, file[key]])) as Record<QuotaKey, unknown>,
  };
  checkTogether(config);
  return Object.freeze(config);
}

function unknownKey(key: string, known: readonly string[]): StartError {
  const meant = closestTo(key, known);
  return new StartError(`--config: unknown key ${key}${meant === null ? '' : `; did you mean ${meant}?`}`, 2);
}

function checkTogether(config: ManagerConfig): void {
  if (config.replicas === 1) return;
  if (config.redis === null) throw badOption('redis', 'is required with --replicas above 1');
  if (config.database.startsWith('sqlite:')) {
    throw badOption('database', 'must be postgres://… with --replicas above 1');
  }
}
