import { NoRuntime } from '../../../src/runtime/no-runtime.ts';
import type {
  Fence,
  ForkFences,
  HandOverTrust,
  LifecycleEvent,
  LifecyclePage,
  Liveness,
  MadeSandbox,
  Runtime,
  RuntimeChange,
  RuntimeEnd,
  RuntimeFork,
  RuntimeSpec,
  RuntimeState,
  UndeliveredPage,
} from '../../../src/runtime/runtime.ts';
import { stepsOf } from '../../../src/runtime/steps.ts';
import { newEventIds } from '../../../src/webhook/signed-event.ts';
import { ScriptedNetworks } from './scripted-networks.ts';

const PAGE = 100;

type Verb = 'create' | 'pause' | 'resume' | 'fork' | 'change' | 'end' | 'remove';

/** A runtime that keeps states alone, and does what a test says: waits, fails, or says that a sandbox is lost. */
export class ScriptedRuntime extends NoRuntime implements Runtime {
  override readonly networks = new ScriptedNetworks();
  readonly states = new Map<string, RuntimeState>();
  /** What was asked for: `verb id`. */
  readonly calls: string[] = [];
  readonly specs = new Map<string, RuntimeSpec>();
  /** What the daemons have recorded of their sandboxes' lives; a test may add to it. */
  readonly lives = new Map<string, LifecycleEvent[]>();
  /** False: no daemon answers when it is asked for its sandbox's life. */
  tells_life = true;
  /** What it says of the sandboxes that it makes. */
  persistence: MadeSandbox['persistence'] = null;
  /** The highest numbers of operations that were taken over. */
  readonly #taken = new Map<string, number>();
  /** Those whose last pause, or the resume after it, has kept no process. */
  readonly #emptied = new Set<string>();
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

  override async create(spec: RuntimeSpec, fence?: Fence): Promise<MadeSandbox> {
    await this.#ask('create', spec.sandbox_id);
    await this.#begin('create', spec.sandbox_id, fence);
    this.specs.set(spec.sandbox_id, spec);
    this.states.set(spec.sandbox_id, 'running');
    this.live(spec.sandbox_id, 'sandbox.ready');
    return { pod_name: `pod-${spec.sandbox_id}`, persistence: this.persistence };
  }

  override async pause(...[id = '', , fence, memory]: Partial<Parameters<Runtime['pause']>>) {
    return this.#become('pause', id, 'paused', fence, memory);
  }

  override async resume(...[id = '', , fence, memory]: Partial<Parameters<Runtime['resume']>>) {
    return this.#become('resume', id, 'running', fence, memory);
  }

  override async fork(source_id: string, child: RuntimeSpec, fences?: ForkFences): Promise<RuntimeFork> {
    await this.#ask('fork', source_id);
    await this.#begin('hold the source', source_id, fences?.source);
    await this.#begin('make the copy', child.sandbox_id, fences?.child);
    const life = await this.liveness(source_id);
    if (life !== 'alive') return { outcome: life };
    this.specs.set(child.sandbox_id, child);
    this.states.set(child.sandbox_id, 'paused');
    this.live(child.sandbox_id, 'sandbox.ready');
    this.live(child.sandbox_id, 'sandbox.paused');
    return { outcome: 'created', pod_name: `pod-${child.sandbox_id}`, persistence: this.persistence };
  }

  override async change(sandbox_id = '', change: object = {}, fence?: Fence): Promise<RuntimeChange> {
    await this.#ask('change', `${sandbox_id} ${JSON.stringify(change)}`);
    await this.#begin('change', sandbox_id, fence);
    const life = await this.liveness(sandbox_id);
    return life === 'alive' ? 'done' : life;
  }

  override async end(sandbox_id = '', fence?: Fence): Promise<RuntimeEnd> {
    await this.#ask('end', sandbox_id);
    await this.#begin('end', sandbox_id, fence);
    if (this.states.get(sandbox_id) === 'absent') return { outcome: 'absent' };
    const is_ended = this.lives.get(sandbox_id)?.at(-1)?.event_type === 'sandbox.killed';
    if (!is_ended) this.live(sandbox_id, 'sandbox.killed');
    return { outcome: 'killed' };
  }

  override async lifecycle(sandbox_id = '', _trust: object, after = 0): Promise<LifecyclePage | null> {
    if (!this.tells_life) return null;
    const later = (this.lives.get(sandbox_id) ?? []).filter(({ sequence }) => sequence > after);
    return { events: later.slice(0, PAGE), more: later.length > PAGE, refused: 0 };
  }

  override async *handOver(
    sandbox_id = '',
    { lifecycle_after = 0 }: Partial<HandOverTrust> = {},
    fence?: Fence,
  ): AsyncIterable<UndeliveredPage> {
    await this.#begin('hand over', sandbox_id, fence);
    const lifecycle = (this.lives.get(sandbox_id) ?? []).filter(({ sequence }) => sequence > lifecycle_after);
    yield { records: [], lifecycle, lost_records: 0, set_aside: 0, trouble: null };
  }

  /** The sandbox's daemon records an event of its life. */
  live(sandbox_id: string, event_type: string): LifecycleEvent {
    const life = this.lives.get(sandbox_id) ?? [];
    const sequence = (life.at(-1)?.sequence ?? 0) + 1;
    const [event_id = ''] = newEventIds(1, sequence);
    const body = JSON.stringify({ event_id, event_type, timestamp: '2026-01-01T00:00:00.000Z', sequence });
    const event = { event_id, event_type, sequence, body, created_at_ms: 0 };
    this.lives.set(sandbox_id, [...life, event]);
    return event;
  }

  override async fenceOff(sandbox_id = '', number = 0): Promise<void> {
    if (this.states.has(sandbox_id)) this.#taken.set(sandbox_id, number);
  }

  override async remove(sandbox_id = '', fence?: Fence): Promise<void> {
    await this.#ask('remove', sandbox_id);
    await this.#begin('remove', sandbox_id, fence);
    this.states.delete(sandbox_id);
  }

  override async list(): Promise<string[]> {
    return [...this.states.keys()];
  }

  override async inspect(sandbox_id = ''): Promise<RuntimeState> {
    return this.states.get(sandbox_id) ?? 'absent';
  }

  override async liveness(sandbox_id = ''): Promise<Liveness> {
    const state = this.states.get(sandbox_id) ?? 'absent';
    return state === 'lost' ? 'lost' : state === 'absent' ? 'unknown' : 'alive';
  }

  async #become(
    verb: 'pause' | 'resume',
    sandbox_id: string,
    state: RuntimeState,
    fence?: Fence,
    memory = true,
  ): Promise<RuntimeChange> {
    await this.#ask(verb, sandbox_id);
    await this.#begin(verb, sandbox_id, fence);
    const life = await this.liveness(sandbox_id);
    if (life !== 'alive') return life;
    if (this.states.get(sandbox_id) === state) return 'done';
    this.states.set(sandbox_id, state);
    if (!memory) this.#emptied.add(sandbox_id);
    else if (verb === 'pause') this.#emptied.delete(sandbox_id);
    this.live(sandbox_id, state === 'paused' ? 'sandbox.paused' : 'sandbox.resumed');
    return this.#emptied.has(sandbox_id) ? 'emptied' : 'done';
  }

  async #begin(step: string, sandbox_id: string, fence: Fence | undefined): Promise<void> {
    await stepsOf(fence, () => this.#taken.get(sandbox_id) ?? 0)(step);
  }

  async #ask(verb: Verb, what: string): Promise<void> {
    this.calls.push(`${verb} ${what}`);
    await this.#held.get(verb);
    const error = this.#failing.get(verb);
    if (error) throw error;
  }
}
