import { closestTo } from '../../base/closest.ts';
import { badOption, type Given, type OptionValues, readOptions } from '../../base/options.ts';
import { StartError } from '../../contract/errors.ts';
import type { SandboxBandwidth } from '../../contract/sandboxes.ts';
import type { SandboxTemplates } from '../../contract/templates.ts';
import { BANDWIDTH_KEYS, defaultBandwidth } from './bandwidth.ts';
import { MANAGER_OPTIONS } from './options.ts';
import { configuredTemplates, TEMPLATES_KEY } from './templates.ts';

/** The limits of a node for sandboxes; null: what the machine has. */
export interface NodeBudget {
  readonly memory_mib: number | null;
  readonly cpu_millis: number | null;
  readonly sandboxes: number | null;
  readonly disk_mib: number | null;
}

type Options = OptionValues<typeof MANAGER_OPTIONS>;
type NodeOption = 'node_memory' | 'node_cpus' | 'node_sandboxes' | 'node_disk';

/** The configuration of a manager; parsed once and frozen. Source: contract section 7. */
export interface ManagerConfig extends Omit<Options, 'listen' | NodeOption> {
  readonly host: string;
  readonly port: number;
  /** The bandwidth of every sandbox whose claim does not say otherwise. */
  readonly bandwidth: SandboxBandwidth;
  readonly node: NodeBudget;
  readonly templates: SandboxTemplates;
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
    ...MANAGER_OPTIONS.map(({ name }) => name),
    ...QUOTA_KEYS,
    ...BANDWIDTH_KEYS,
    TEMPLATES_KEY,
  ];
  const unknown = Object.keys(file).find((key) => !known.includes(key));
  if (unknown !== undefined) throw unknownKey(unknown, known);
  const options = readOptions(MANAGER_OPTIONS, command_line, environment, file);
  const { listen, node_memory, node_cpus, node_sandboxes, node_disk, ...others } = options;
  const [host, port] = listen;
  const config: ManagerConfig = {
    ...others,
    host,
    port,
    bandwidth: defaultBandwidth(file),
    node: {
      memory_mib: node_memory,
      cpu_millis: node_cpus,
      sandboxes: node_sandboxes,
      disk_mib: node_disk,
    },
    templates: configuredTemplates(file),
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
