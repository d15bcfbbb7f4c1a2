import { join } from 'node:path';
import type { SandboxFiles } from '../local/sandbox-files.ts';
import type { RuntimeSpec } from '../runtime.ts';
import { writeEtcFiles } from './etc-files.ts';
import { type LocalNetworks, loopbackNetwork, type SandboxNetwork } from './local-networks.ts';
import { UnmeteredNetworks } from './unmetered-networks.ts';

/** `--network none`: each sandbox has a loopback interface of its own, and nothing else. */
export class LoopbackNetworks extends UnmeteredNetworks implements LocalNetworks {
  constructor() {
    super({ mode: 'none', reason: null, block_all: 'network_namespace' });
  }

  /** Nothing is made but files: the namespace is the sandbox's own, and ends with it. */
  override async attach(files: SandboxFiles, { sandbox_id }: RuntimeSpec): Promise<SandboxNetwork> {
    return isolated(files, sandbox_id);
  }
}

/** A network of the loopback interface alone. */
export function isolated({ directory }: SandboxFiles, sandbox_id: string): SandboxNetwork {
  const etc = join(directory, 'etc');
  writeEtcFiles(etc, { sandbox_id, name_servers: [], settings: [] });
  return loopbackNetwork(etc);
}
