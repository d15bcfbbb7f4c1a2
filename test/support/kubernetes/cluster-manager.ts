import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { Client } from '../manager/manager-client.ts';
import { ManagerProgram, runManagerCommand } from '../manager-program.ts';
import { scratchFolder } from '../scratch.ts';
import { HOST_ADDRESS, IMAGE, type TestCluster } from './cluster.ts';

const SCOPES = ['sandboxes:write', 'quota:read', 'usage:read', 'webhooks:read'];

/** The built manager, as a program, with sandboxes in a cluster. */
export class ClusterManager {
  readonly client: Client;
  /** Of a team. */
  readonly token: string;
  readonly program: () => ManagerProgram;
  readonly #restart: () => Promise<void>;

  private constructor(token: string, program: () => ManagerProgram, restart: () => Promise<void>) {
    this.client = new Client(() => program().url, token);
    this.token = token;
    this.program = program;
    this.#restart = restart;
  }

  /** Starts one with the rights of the manifests; it ends with the test. */
  static async start(cluster: TestCluster): Promise<ClusterManager> {
    const folder = scratchFolder();
    const config = join(folder, 'config.yaml');
    const resources = { memory: '256Mi', cpu: 0.1, disk: '256Mi' };
    const content = {
      ...{ listen: '127.0.0.1:0', database: `sqlite:${join(folder, 'manager.db')}`, runtime: 'kubernetes' },
      ...{ kubeconfig: cluster.kubeconfigOf('sandbox-manager'), kubernetes_image: IMAGE },
      ...{ allow_webhook_cidr: [`${HOST_ADDRESS}/32`], secret_key_file: join(folder, 'key') },
      templates: { default: { image: IMAGE, resources } },
    };
    writeFileSync(config, stringify(content), { mode: 0o600 });
    let program = await ManagerProgram.start(['--config', config]);
    onTestFinished(() => program.end('SIGTERM'));
    const scopes = SCOPES.flatMap((scope) => ['--scope', scope]);
    const token = await runManagerCommand(
      'token',
      'create',
      '--team',
      'team_1',
      ...scopes,
      '--config',
      config,
    );
    return new ClusterManager(
      token,
      () => program,
      async () => {
        await program.end('SIGKILL');
        program = await ManagerProgram.start(['--config', config]);
      },
    );
  }

  /** Kills it and starts it again: it knows nothing but its database. */
  killAndStart(): Promise<void> {
    return this.#restart();
  }
}
