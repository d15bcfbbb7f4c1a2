import type { Socket } from 'node:net';
import { join } from 'node:path';
import { connectControl } from '../../../src/runtime/control-client.ts';
import { NoRuntime } from '../../../src/runtime/no-runtime.ts';
import type {
  Liveness,
  MadeSandbox,
  Runtime,
  RuntimeChange,
  RuntimeSpec,
  RuntimeState,
} from '../../../src/runtime/runtime.ts';
import { type Running, startDaemon } from '../daemon/running-daemon.ts';
import { scratchFolder } from '../scratch.ts';

/** Sandboxes whose daemons run in this process: real ones, without a root file system of their own. */
export class DaemonRuntime extends NoRuntime implements Runtime {
  readonly #daemons = new Map<string, Running>();
  /** What the runtime says of sandboxes, where a test decides. */
  readonly states = new Map<string, RuntimeState>();
  readonly #folder = scratchFolder();

  override async create({ sandbox_id, team_id }: RuntimeSpec): Promise<MadeSandbox> {
    const socket = this.#socket(sandbox_id);
    const identity = ['--sandbox-id', sandbox_id, '--team-id', team_id];
    this.#daemons.set(sandbox_id, await startDaemon('--control-socket', socket, ...identity));
    this.states.set(sandbox_id, 'running');
    return { pod_name: `daemon-${sandbox_id}`, persistence: null };
  }

  override async pause(...[sandbox_id, reason = null, , memory]: Partial<Parameters<Runtime['pause']>>) {
    const change = await this.#ask(sandbox_id, 'pause', { reason, memory, flush_ms: 0 });
    this.states.set(sandbox_id as string, 'paused');
    return change;
  }

  override async resume(...[sandbox_id, reason = null, , memory]: Partial<Parameters<Runtime['resume']>>) {
    const change = await this.#ask(sandbox_id, 'resume', { reason, memory });
    this.states.set(sandbox_id as string, 'running');
    return change;
  }

  override async inspect(sandbox_id?: string): Promise<RuntimeState> {
    return this.states.get(sandbox_id as string) ?? 'absent';
  }

  override async liveness(sandbox_id?: string): Promise<Liveness> {
    const state = this.states.get(sandbox_id as string);
    return state === undefined ? 'unknown' : state === 'lost' ? 'lost' : 'alive';
  }

  override async connect(sandbox_id: string): Promise<Socket> {
    return connectControl(this.#socket(sandbox_id));
  }

  #socket(sandbox_id: string): string {
    return join(this.#folder, `${sandbox_id.slice(-12)}.sock`);
  }

  /** Its ports are those of this machine: the tests' own. */
  override hasOwnPorts(_sandbox_id: string): boolean {
    return true;
  }

  /** The daemon goes, and nobody says so. */
  async lose(sandbox_id: string): Promise<void> {
    this.states.set(sandbox_id, 'lost');
    await this.#running(sandbox_id).daemon.stop('signal', 'SIGTERM');
  }

  async #ask(
    sandbox_id: string | undefined,
    change: 'pause' | 'resume',
    body: object,
  ): Promise<RuntimeChange> {
    const { call } = this.#running(sandbox_id);
    const answer = await call('POST', `/api/v1/sandbox/${change}`, { body: JSON.stringify(body) });
    if (answer.status !== 200) throw new Error(answer.text);
    return answer.json.data.memory ? 'done' : 'emptied';
  }

  #running(sandbox_id: string | undefined): Running {
    return this.#daemons.get(sandbox_id as string) as Running;
  }
}
