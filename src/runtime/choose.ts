import { resolve } from 'node:path';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { StartError } from '../contract/errors.ts';
import type { NetworkOption } from '../contract/network.ts';
import type { SandboxTemplates } from '../contract/templates.ts';
import { type Cidr, cidrText } from '../webhook/address.ts';
import { SandboxDisks } from './disk/sandbox-disks.ts';
import { Bubblewrap } from './isolation.ts';
import type { InjectionOption } from './kubernetes/injection.ts';
import { ResourceGroups } from './limits/resource-groups.ts';
import { LocalRuntime } from './local-runtime.ts';
import { ChosenNetworks } from './networks/chosen-networks.ts';
import { NoRuntime } from './no-runtime.ts';
import { builtProgram, ProgramCopies } from './program.ts';
import type { Runtime } from './runtime.ts';
import { NoIsolation } from './walls/no-isolation.ts';

/** The values of `--runtime`. Source: contract section 7. */
export type RuntimeKind = 'local' | 'local-unsafe' | 'kubernetes' | 'none';

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
  /** Null: the service account of the Pod that this runs in. */
  kubeconfig: string | null;
  kubernetes_namespace: string | null;
  kubernetes_image: string | null;
  kubernetes_injection: InjectionOption;
  templates: SandboxTemplates;
}

/**
 * The runtime that `--runtime` names, not started; its `start` checks that it works here. Throws StartError if the built
 * daemon is missing, or the runtime cannot have the network.
 */
export async function chooseRuntime(options: RuntimeOptions, clock: Clock, log: Log): Promise<Runtime> {
  const { runtime: kind, data_dir, allow_webhook_cidr, allow_sandbox_cidr } = options;
  const network = networkOf(options);
  if (kind === 'none') return new NoRuntime();
  const webhook_cidrs = allow_webhook_cidr.map(cidrText);
  if (kind === 'kubernetes') {
    const { kubeconfig, kubernetes_namespace: namespace, kubernetes_image, templates } = options;
    const { kubernetes_injection: injection } = options;
    const { KubernetesRuntime } = await import('./kubernetes/kubernetes-runtime.ts');
    const product_image = kubernetes_image ?? '';
    const given = { kubeconfig, namespace, product_image, injection, templates, webhook_cidrs };
    return new KubernetesRuntime(given, clock, log);
  }
  const folder = resolve(data_dir);
  const programs = new ProgramCopies(folder, builtProgram());
  const isolation = kind === 'local' ? new Bubblewrap(programs) : new NoIsolation(programs);
  if (kind === 'local-unsafe') log.warn('local-unsafe: sandboxes are not isolated from this machine');
  return new LocalRuntime({
    data_dir: folder,
    isolation,
    programs,
    groups: ResourceGroups.open(),
    disks: new SandboxDisks(kind === 'local' ? null : 'sandboxes are not isolated'),
    networks: new ChosenNetworks({
      network,
      allowed_cidrs: allow_sandbox_cidr.map(cidrText),
      is_fail_open: options.quota_fail_open,
      clock,
      log,
    }),
    webhook_cidrs,
    clock,
    log,
  });
}

/** Without isolation there are no namespaces. Throws StartError for a network that the runtime cannot give. */
function networkOf({ runtime, network }: RuntimeOptions): NetworkOption {
  if (runtime === 'local') return network;
  if (network === 'metered' || network === 'none')
    throw new StartError(`--network ${network} needs --runtime local, not ${runtime}`);
  return 'host-unmetered';
}
