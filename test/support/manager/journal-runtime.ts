import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NoRuntime } from '../../../src/runtime/no-runtime.ts';
import type {
  HandOverTrust,
  LifecycleEvent,
  LifecyclePage,
  MadeSandbox,
  Runtime,
  RuntimeChange,
  RuntimeEnd,
  RuntimeFork,
  RuntimeSpec,
  RuntimeState,
  UndeliveredPage,
} from '../../../src/runtime/runtime.ts';
import { newEventIds } from '../../../src/webhook/signed-event.ts';

const PAGE = 100;
/** Events that a daemon records beside those of a change, at most: of changes that it has taken back. */
const MORE_MAX = 18;

/** Sandboxes whose daemons are files: what one has recorded outlives the manager that asked for it, killed at any instant. */
export class JournalRuntime extends NoRuntime implements Runtime {
  readonly #folder: string;

  constructor(folder: string) {
    super();
    this.#folder = folder;
  }

  override async create({ sandbox_id }: RuntimeSpec): Promise<MadeSandbox> {
    if (!existsSync(this.#path(sandbox_id))) this.#record(sandbox_id, 'sandbox.ready');
    return { pod_name: 'journal', persistence: null };
  }

  override async pause(sandbox_id = ''): Promise<RuntimeChange> {
    return this.#change(sandbox_id, 'sandbox.paused');
  }

  override async resume(sandbox_id = ''): Promise<RuntimeChange> {
    return this.#change(sandbox_id, 'sandbox.resumed');
  }

  override async fork(_source_id: string, child: RuntimeSpec): Promise<RuntimeFork> {
    await this.create(child);
    this.#record(child.sandbox_id, 'sandbox.paused');
    return { outcome: 'created', pod_name: 'journal', persistence: null };
  }

  override async inspect(sandbox_id = ''): Promise<RuntimeState> {
    const last = this.#life(sandbox_id).at(-1)?.event_type;
    if (last === undefined) return 'absent';
    return last === 'sandbox.killed' ? 'lost' : last === 'sandbox.paused' ? 'paused' : 'running';
  }

  override async lifecycle(sandbox_id = '', _trust: object, after = 0): Promise<LifecyclePage | null> {
    const later = this.#life(sandbox_id).filter(({ sequence }) => sequence > after);
    return { events: later.slice(0, PAGE), more: later.length > PAGE, refused: 0 };
  }

  override async end(sandbox_id = ''): Promise<RuntimeEnd> {
    const last = this.#life(sandbox_id).at(-1)?.event_type;
    if (last !== undefined && last !== 'sandbox.killed') this.#record(sandbox_id, 'sandbox.killed');
    return { outcome: 'killed' };
  }

  override async *handOver(
    sandbox_id = '',
    { lifecycle_after = 0 }: Partial<HandOverTrust> = {},
  ): AsyncIterable<UndeliveredPage> {
    const lifecycle = this.#life(sandbox_id).filter(({ sequence }) => sequence > lifecycle_after);
    yield { records: [], lifecycle, lost_records: 0, set_aside: 0, trouble: null };
    writeFileSync(`${this.#path(sandbox_id)}.read`, '');
  }

  /** A sandbox whose claim is undone leaves nothing; one that was deleted leaves its journal, for the test. */
  override async remove(sandbox_id = ''): Promise<void> {
    const path = this.#path(sandbox_id);
    if (!existsSync(`${path}.read`)) rmSync(path, { force: true });
    else if (existsSync(path)) renameSync(path, `${path}.gone`);
  }

  #change(sandbox_id: string, event_type: string): RuntimeChange {
    const opposite = event_type === 'sandbox.paused' ? 'sandbox.resumed' : 'sandbox.paused';
    const taken_back = Math.floor((Math.random() * MORE_MAX) / 2);
    const types = Array.from({ length: taken_back }, () => [event_type, opposite]).flat();
    this.#record(sandbox_id, ...types, event_type);
    return 'done';
  }

  #record(sandbox_id: string, ...types: string[]): void {
    const ids = newEventIds(types.length, Date.now());
    let sequence = this.#life(sandbox_id).at(-1)?.sequence ?? 0;
    const lines = types.map((event_type, i) => {
      const event_id = ids[i] as string;
      sequence += 1;
      const body = JSON.stringify({ event_id, event_type, sandbox_id, sequence });
      return `${JSON.stringify({ event_id, event_type, sequence, body, created_at_ms: 0 })}\n`;
    });
    appendFileSync(this.#path(sandbox_id), lines.join(''));
  }

  #life(sandbox_id: string): LifecycleEvent[] {
    const path = this.#path(sandbox_id);
    return existsSync(path) ? journalOf(path) : [];
  }

  #path(sandbox_id: string): string {
    return join(this.#folder, sandbox_id);
  }
}

/** What a journal holds. */
export function journalOf(path: string): LifecycleEvent[] {
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}
