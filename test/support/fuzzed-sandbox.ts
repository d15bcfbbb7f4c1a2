import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxFiles } from '../../src/runtime/local/sandbox-files.ts';
import type { Client } from './manager/manager-client.ts';

/** A sandbox that nobody may change: what is true of it before and after others have tried. */
export class WatchedSandbox {
  readonly sandbox_id: string;
  readonly #owner: Client;
  readonly #files: SandboxFiles;
  #before = '';

  constructor(owner: Client, data_dir: string, sandbox_id: string) {
    this.#owner = owner;
    this.#files = new SandboxFiles(data_dir, -1, sandbox_id);
    this.sandbox_id = sandbox_id;
  }

  /** Starts the process that is to outlive everything. */
  async begin(): Promise<void> {
    const { status } = await this.#owner.post(`${this.#path}/processes`, {
      ...{ process_id: 'keep', command: ['sleep', '100000'], stdin: 'pipe' },
    });
    if (status !== 201) throw new Error(`the process was answered ${status}`);
    this.#before = await this.#facts();
  }

  /** What has changed; empty where nothing has. */
  async changes(): Promise<string[]> {
    const after = await this.#facts();
    return after === this.#before ? [] : [`before ${this.#before}, after ${after}`];
  }

  /** Asks something that only it is answered so: each answer names its own question. */
  async strayAnswers(count: number): Promise<number> {
    let strays = 0;
    for (let n = 0; n < count; n++) {
      const name = `question_${n}_${Math.floor(performance.now())}`;
      const { status, error } = await this.#owner.get(`${this.#path}/processes?${name}=1`);
      if (status !== 400 || !JSON.stringify(error).includes(name)) strays += 1;
    }
    return strays;
  }

  get #path(): string {
    return `/api/v1/sandboxes/${this.sandbox_id}`;
  }

  async #facts(): Promise<string> {
    const sandbox = await this.#owner.get(this.#path);
    const processes = await this.#owner.get(`${this.#path}/processes`);
    const deliveries = await this.#owner.get(`${this.#path}/webhook/deliveries?limit=1000`);
    const { directory, rootfs } = this.#files;
    const { daemon, state } = JSON.parse(readFileSync(join(directory, 'sandbox.json'), 'utf8'));
    const env = join(rootfs, 'var/lib/sandboxd/environment.json');
    return JSON.stringify({
      status: sandbox.data?.status,
      processes: processes.data?.processes.map(({ process_id, pid, state }: Record<string, unknown>) => [
        ...[process_id, pid, state],
      ]),
      events: deliveries.data?.deliveries.map(({ event_type }: { event_type: string }) => event_type).sort(),
      files: readdirSync(join(rootfs, 'root')),
      env: existsSync(env) ? readFileSync(env, 'utf8') : null,
      daemon: [daemon.pid, state],
    });
  }
}
