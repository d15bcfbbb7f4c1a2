import type {
  Runtime,
  RuntimeChange,
  RuntimeEnd,
  RuntimeFork,
  RuntimeSpec,
  RuntimeState,
  UndeliveredPage,
} from './runtime.ts';

/**
 * `--runtime none`: sandboxes are rows of the database only, and every change succeeds. It keeps no state, so every
 * replica and every restart agrees with the database. Source: contract section 7, `--runtime`.
 */
export class NoRuntime implements Runtime {
  async start(): Promise<void> {}

  async create({ sandbox_id }: RuntimeSpec): Promise<{ pod_name: string }> {
    return { pod_name: podName(sandbox_id) };
  }

  async pause(): Promise<RuntimeChange> {
    return 'done';
  }

  async resume(): Promise<RuntimeChange> {
    return 'done';
  }

  async fork(_source_id: string, child: RuntimeSpec): Promise<RuntimeFork> {
    return { outcome: 'created', pod_name: podName(child.sandbox_id) };
  }

  async change(): Promise<RuntimeChange> {
    return 'done';
  }

  async end(): Promise<RuntimeEnd> {
    return { outcome: 'absent' };
  }

  async *handOver(): AsyncIterable<UndeliveredPage> {}

  async remove(): Promise<void> {}

  async inspect(): Promise<RuntimeState> {
    return 'untracked';
  }

  async isAlive(_sandbox_id: string): Promise<boolean> {
    return true;
  }

  controlSocket(): string | null {
    return null;
  }

  async list(): Promise<string[]> {
    return [];
  }
}

function podName(sandbox_id: string): string {
  return `none-${sandbox_id}`;
}
