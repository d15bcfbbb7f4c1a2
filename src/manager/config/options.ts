import type { OptionDefinition } from '../../base/options.ts';
import { NETWORK_OPTIONS } from '../../contract/network.ts';
import { RUNTIMES } from '../../contract/runtimes.ts';

/** All options of the server. Source: contract section 7. */
export const OPTIONS = [
  { name: 'listen', value: 'address', description: 'host and port to listen on (default: 127.0.0.1:8080)' },
  {
    name: 'database',
    value: 'url',
    description: 'sqlite:<path> (default: ./sandbox-manager.db) or postgres://…',
  },
  { name: 'redis', value: 'url', description: 'Redis or Valkey for rate quotas shared by the replicas' },
  { name: 'runtime', value: 'kind', description: `${RUNTIMES.join(', ')} (default: local)` },
  {
    name: 'network',
    value: 'mode',
    description: `network of local sandboxes: ${NETWORK_OPTIONS.join(', ')} (default: auto)`,
  },
  {
    name: 'data_dir',
    value: 'dir',
    description: 'root file systems and state of local sandboxes (default: ./sandbox-manager-data)',
  },
  { name: 'region', value: 'name', description: 'name of the region (default: local)' },
  { name: 'replicas', value: 'n', description: 'number of managers that share the database (default: 1)' },
  { name: 'metering', value: 'on|off', description: 'record usage (default: on)' },
  {
    name: 'quota_fail_open',
    value: null,
    description: 'admit requests while the rate authority cannot be reached',
  },
  {
    name: 'allow_webhook_cidr',
    value: 'cidr',
    description: 'non-public address range that webhooks may reach; repeatable',
    is_list: true,
  },
  {
    name: 'allow_sandbox_cidr',
    value: 'cidr',
    description: 'non-public address range that sandboxes may reach; repeatable',
    is_list: true,
  },
  {
    name: 'secret_key_file',
    value: 'path',
    description:
      'key that seals secrets in the database; created if missing (default: ./sandbox-manager.key)',
  },
  {
    name: 'kubeconfig',
    value: 'path',
    description: 'access to the cluster of --runtime kubernetes (default: the service account of its Pod)',
  },
  {
    name: 'kubernetes_namespace',
    value: 'name',
    description: 'namespace of the sandboxes (default: that of the access)',
  },
  {
    name: 'kubernetes_image',
    value: 'image',
    description: 'image of this release, for the daemon and the keeper of every sandbox',
  },
  {
    name: 'kubernetes_injection',
    value: 'auto|image-volume|init-container',
    description: 'how that image gets into sandboxes (default: auto)',
  },
  { name: 'node_memory', value: 'size', description: 'memory for sandboxes, like 8Gi' },
  { name: 'node_cpus', value: 'cores', description: 'cores for sandboxes, like 3.5' },
  { name: 'node_sandboxes', value: 'n', description: 'maximum number of running sandboxes' },
  { name: 'node_disk', value: 'size', description: 'disk of --data-dir for sandboxes, like 50Gi' },
  { name: 'console', value: 'on|off', description: 'serve the console at /console (default: on)' },
  { name: 'log_level', value: 'level', description: 'level of the JSON log on stderr (default: info)' },
] as const satisfies OptionDefinition[];

/** The name of an option. */
export type OptionName = (typeof OPTIONS)[number]['name'];
