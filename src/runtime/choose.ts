import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { badOption } from '../base/options.ts';
import { StartError } from '../contract/errors.ts';
import type { NetworkOption } from '../contract/network.ts';
import type { InjectionOption, RuntimeKind, SandboxTemplates } from '../contract/templates.ts';
import { type Cidr, cidrText } from '../webhook/address.ts';
import { NoRuntime } from './no-runtime.ts';
import type { Runtime } from './runtime.ts';

/** The options that choose and configure a runtime. */
export interface RuntimeOptions {
  runtime: RuntimeKind;
  data_dir: string;
  /** Non-public addresses that webhooks may reach. */
  allow_webhook_cidr: Cidr[];
  network: NetworkOption;
  /** Addresses that sandboxes may reach although they are the node's, another sandbox's, or link-local. */
  allow_sandbox_cidr: Cidr[];
  quota_fail_open: boolean;
  /** `--node-memory` in MiB; null: the machine's. */
  node: { memory_mib: number | null };
  /** Null: the service account of the Pod that this runs in. */
  kubeconfig: string | null;
  kubernetes_namespace: string | null;
  kubernetes_image: string | null;
  kubernetes_injection: InjectionOption;
  templates: SandboxTemplates;
}

/**
 * The runtime that `--runtime` names, not started; its `start` checks that it works here. Only that one is loaded.
 * Throws StartError if the built daemon is missing, or for an option that the runtime lacks or cannot have.
 */
export async function chooseRuntime(options: RuntimeOptions, clock: Clock, log: Log): Promise<Runtime> {
  const network = networkOf(options);
  switch (options.runtime) {
    case 'none':
      return new NoRuntime();
    case 'kubernetes':
      return kubernetesRuntime(options, clock, log);
    case 'local':
      return localRuntime(options, network, true, clock, log);
    case 'local-unsafe':
      log.warn('local-unsafe: sandboxes are not isolated from this machine');
      return localRuntime(options, network, false, clock, log);
  }
}

/** Without isolation there are no namespaces. Throws StartError for a network that the runtime cannot give. */
function networkOf({ runtime, network }: RuntimeOptions): NetworkOption {
  if (runtime === 'local') return network;
  if (network === 'metered' || network === 'none')
    throw new StartError(`--network ${network} needs --runtime local, not ${runtime}`);
  return 'host-unmetered';
}

async function localRuntime(
  options: RuntimeOptions,
  network: NetworkOption,
  is_isolated: boolean,
  clock: Clock,
  log: Log,
): Promise<Runtime> {
  const { openLocalRuntime } = await import('./local/open-local-runtime.ts');
  return openLocalRuntime({ ...options, network, is_isolated }, clock, log);
}

async function kubernetesRuntime(options: RuntimeOptions, clock: Clock, log: Log): Promise<Runtime> {
  const { kubernetes_image: product_image, templates } = options;
  if (product_image === null) throw badOption('kubernetes_image', 'is required with --runtime kubernetes');
  if (templates.size === 0)
    throw new StartError('--config: templates is required with --runtime kubernetes', 2);
  const { KubernetesRuntime } = await import('./kubernetes/kubernetes-runtime.ts');
  return new KubernetesRuntime(
    {
      kubeconfig: options.kubeconfig,
      namespace: options.kubernetes_namespace,
      product_image,
      injection: options.kubernetes_injection,
      templates,
      webhook_cidrs: options.allow_webhook_cidr.map(cidrText),
    },
    clock,
    log,
  );
}
