import { NoRuntime } from '../../../src/runtime/no-runtime.ts';
import type {
  Runtime,
  RuntimeChange,
  RuntimeEnd,
  RuntimeFork,
  RuntimeSpec,
  RuntimeState,
} from '../../../src/runtime/runtime.ts';
import { ScriptedNetworks } from './scripted-networks.ts';

type Verb = 'create' | 'pause' | 'resume' | 'fork' | 'change' | 'end' | 'remove';

/** A runtime that keeps states alone, and does what a test says: waits, fails, or says that a sandbox is lost. */
export class ScriptedRuntime extends NoRuntime implements Runtime {
  override readonly networks = new ScriptedNetworks();
  readonly states = new Map<string, RuntimeState>();
  /** What was asked for: `verb id`. */
  readonly calls: string[] = [];
  readonly specs = new Map<string, RuntimeSpec>();
  #held = new Map<Verb, Promise<void>>();
  #failing = new Map<Verb, Error>();

  /** Makes a verb wait until the function given back is called. */
  hold(verb: Verb): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held.set(verb, promise);
    return () => {
      this.#held.delete(verb);
      resolve();
    };
  }

  /** Makes a verb throw, until `error` is null. */
  fail(verb: Verb, error: Error | null): void {
    if (error) this.#failing.set(verb, error);
    else this.#failing.delete(verb);
  }

  override async create(spec: RuntimeSpec): Promise<{ pod_name: string }> {
    await this.#ask('create', spec.sandbox_id);
    this.specs.set(spec.sandbox_id, spec);
    this.states.set(spec.sandbox_id, 'running');
    return { pod_name: `pod-${spec.sandbox_id}` };
  }

  override async pause(sandbox_id = ''): Promise<RuntimeChange> {
    return this.#become('pause', sandbox_id, 'paused');
  }

  override async resume(sandbox_id = ''): Promise<RuntimeChange> {
    return this.#become('resume', sandbox_id, 'running');
  }

  override async fork(source_id: string, child: RuntimeSpec): Promise<RuntimeFork> {
    await this.#ask('fork', source_id);
    if (this.states.get(source_id) === 'lost') return { outcome: 'lost' };
    this.specs.set(child.sandbox_id, child);
    this.states.set(child.sandbox_id, 'paused');
    return { outcome: 'created', pod_name: `pod-${child.sandbox_id}` };
  }

  override async change(sandbox_id = '', change: object = {}): Promise<RuntimeChange> {
    await this.#ask('change', `${sandbox_id} ${JSON.stringify(change)}`);
    return this.states.get(sandbox_id) === 'lost' ? 'lost' : 'done';
  }

  override async end(sandbox_id = ''): Promise<RuntimeEnd> {
    await this.#ask('end', sandbox_id);
    return { outcome: 'killed' };
  }

  override async remove(sandbox_id = ''): Promise<void> {
    await this.#ask('remove', sandbox_id);
    this.states.delete(sandbox_id);
  }

  override async inspect(sandbox_id = ''): Promise<RuntimeState> {
    return this.states.get(sandbox_id) ?? 'absent';
  }

  override async isAlive(sandbox_id = ''): Promise<boolean> {
    const state = this.states.get(sandbox_id) ?? 'absent';
    return state !== 'lost' && state !== 'absent';
  }

  async #become(verb: Verb, sandbox_id: string, state: RuntimeState): Promise<RuntimeChange> {
    await this.#ask(verb, sandbox_id);
    if (this.states.get(sandbox_id) === 'lost') return 'lost';
    this.states.set(sandbox_id, state);
    return 'done';
  }

  async #ask(verb: Verb, what: string): Promise<void> {
    this.calls.push(`${verb} ${what}`);
    await this.#held.get(verb);
    const error = this.#failing.get(verb);
    if (error) throw error;
  }
}
