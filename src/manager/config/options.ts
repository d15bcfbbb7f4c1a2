import { LOG_LEVELS } from '../../base/log.ts';
import {
  choiceOption,
  FILLED_OPTION,
  integerOption,
  type OptionRow,
  SWITCH_OPTION,
} from '../../base/options.ts';
import { TEAM_SHARE_PERCENT } from '../../contract/defaults.ts';
import { NETWORK_OPTIONS } from '../../contract/network.ts';
import { INJECTIONS, RUNTIMES } from '../../contract/templates.ts';
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
  TRANSFER_RATE,
} from './option-values.ts';

const ON_OFF = { ...SWITCH_OPTION, accepted: 'must be on or off' };

/** All options of the server. Source: contract section 7. */
export const MANAGER_OPTIONS = [
  {
    name: 'listen',
    value: 'address',
    description: 'host and port to listen on',
    type: LISTEN_ADDRESS,
    standard: '127.0.0.1:8080',
  },
  {
    name: 'database',
    value: 'url',
    description: 'sqlite:<path> (default: ./sandbox-manager.db) or postgres://…',
    type: DATABASE_URL,
    standard: 'sqlite:./sandbox-manager.db',
    names_standard: true,
  },
  {
    name: 'redis',
    value: 'url',
    description: 'Redis or Valkey for rate quotas shared by the replicas',
    type: REDIS_URL,
  },
  {
    name: 'runtime',
    value: 'kind',
    description: `${RUNTIMES.join(', ')}`,
    type: choiceOption(RUNTIMES),
    standard: 'local',
  },
  {
    name: 'network',
    value: 'mode',
    description: `network of local sandboxes: ${NETWORK_OPTIONS.join(', ')}`,
    type: choiceOption(NETWORK_OPTIONS),
    standard: 'auto',
  },
  {
    name: 'data_dir',
    value: 'dir',
    description: 'root file systems and state of local sandboxes',
    type: FILE_PATH,
    standard: './sandbox-manager-data',
  },
  {
    name: 'adopt_data_dir',
    value: null,
    description: 'make this --data-dir the one of the database; to be given once',
    type: SWITCH_OPTION,
    standard: 'false',
  },
  {
    name: 'region',
    value: 'name',
    description: 'name of the region',
    type: LABEL,
    standard: 'local',
  },
  {
    name: 'replicas',
    value: 'n',
    description: 'number of managers that share the database',
    type: integerOption(1, 1_000),
    standard: '1',
  },
  {
    name: 'metering',
    value: 'on|off',
    description: 'record usage',
    type: ON_OFF,
    standard: 'on',
  },
  {
    name: 'quota_fail_open',
    value: null,
    description: 'admit requests while the rate authority cannot be reached',
    type: SWITCH_OPTION,
    standard: 'false',
  },
  {
    name: 'team_transfer_rate',
    value: 'rate',
    description:
      'bytes per second that pass through the managers for each team, like 10Mi (default: no bound)',
    type: TRANSFER_RATE,
  },
  {
    name: 'allow_webhook_cidr',
    value: 'cidr',
    description: 'non-public address range that webhooks may reach; repeatable',
    type: CIDRS,
    is_list: true,
  },
  {
    name: 'allow_sandbox_cidr',
    value: 'cidr',
    description: 'non-public address range that sandboxes may reach; repeatable',
    type: CIDRS,
    is_list: true,
  },
  {
    name: 'secret_key_file',
    value: 'path',
    description: 'key that seals secrets in the database; created if missing',
    type: FILE_PATH,
    standard: './sandbox-manager.key',
  },
  {
    name: 'kubeconfig',
    value: 'path',
    description: 'access to the cluster of --runtime kubernetes (default: the service account of its Pod)',
    type: FILE_PATH,
  },
  {
    name: 'kubernetes_namespace',
    value: 'name',
    description: 'namespace of the sandboxes (default: that of the access)',
    type: NAMESPACE,
  },
  {
    name: 'kubernetes_image',
    value: 'image',
    description: 'image of this release, for the daemon and the keeper of every sandbox',
    type: FILLED_OPTION,
  },
  {
    name: 'kubernetes_injection',
    value: 'auto|image-volume|init-container',
    description: 'how that image gets into sandboxes',
    type: choiceOption(INJECTIONS),
    standard: 'auto',
  },
  {
    name: 'node_memory',
    value: 'size',
    description: 'memory for sandboxes, like 8Gi',
    type: SIZE,
  },
  {
    name: 'node_cpus',
    value: 'cores',
    description: 'cores for sandboxes, like 3.5',
    type: CORES,
  },
  {
    name: 'node_sandboxes',
    value: 'n',
    description: 'maximum number of running sandboxes',
    type: integerOption(1, 1_000_000),
  },
  {
    name: 'node_disk',
    value: 'size',
    description: 'disk of --data-dir for sandboxes, like 50Gi',
    type: SIZE,
  },
  {
    name: 'team_share',
    value: 'percent',
    description: "a team's share of the node's disk, and of its memory for paused sandboxes; 100: no shares",
    type: integerOption(1, 100),
    standard: String(TEAM_SHARE_PERCENT),
  },
  {
    name: 'console',
    value: 'on|off',
    description: 'serve the console at /console',
    type: ON_OFF,
    standard: 'on',
  },
  {
    name: 'log_level',
    value: 'level',
    description: 'level of the JSON log on stderr',
    type: choiceOption(LOG_LEVELS),
    standard: 'info',
  },
] as const satisfies readonly OptionRow[];
