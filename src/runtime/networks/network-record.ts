import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SandboxNetworkMode } from '../../contract/network.ts';
import type { SandboxBandwidth } from '../../contract/sandboxes.ts';
import type { ProcessIdentity } from '../local/host-process.ts';
import { isLost } from '../local/running-sandbox.ts';
import { SandboxFiles } from '../local/sandbox-files.ts';
import type { MeteredCounts } from './metered-usage.ts';

const FILE = 'network.json';

/** What is known of the network of a sandbox, so that any manager on the machine can take it over. */
export interface NetworkRecord {
  team_id: string;
  mode: SandboxNetworkMode;
  bandwidth: SandboxBandwidth;
  /** The manager that meters it, or makes it; null: nobody. */
  manager: ProcessIdentity | null;
  /** What only the meter counts: drops and waiting. At most about 10 s old while that manager lives. */
  counted: MeteredCounts;
}

/**
 * The records of the networks of a data directory's sandboxes. They have a file of their own, because they are changed
 * by the manager that meters a sandbox, while another may be changing the rest. They need not survive a power cut, which
 * no namespace does.
 */
export class NetworkRecords {
  readonly #data_dir: string;

  constructor(data_dir: string) {
    this.#data_dir = data_dir;
  }

  /** Null if the sandbox is gone, or has no network of its own. */
  read(sandbox_id: string): NetworkRecord | null {
    try {
      return JSON.parse(readFileSync(this.#path(sandbox_id), 'utf8')) as NetworkRecord;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  /** The process of the sandbox's daemon; null if it has none. */
  async daemonPid(sandbox_id: string): Promise<number | null> {
    const files = new SandboxFiles(this.#data_dir, -1, sandbox_id);
    const record = files.readRecord();
    return record?.daemon && !(await isLost(record)) ? record.daemon.pid : null;
  }

  /** Whether there is a record. */
  exists(sandbox_id: string): boolean {
    return existsSync(this.#path(sandbox_id));
  }

  /** Replaces a record in one step. Throws ENOENT if the sandbox's directory is gone. */
  write(sandbox_id: string, record: NetworkRecord): void {
    const path = this.#path(sandbox_id);
    const draft = `${path}.${process.pid}`;
    writeFileSync(draft, `${JSON.stringify(record)}\n`, { mode: 0o600 });
    renameSync(draft, path);
  }

  /** Changes fields of a record; does nothing if there is none. */
  update(sandbox_id: string, change: Partial<NetworkRecord>): void {
    const record = this.read(sandbox_id);
    if (record) this.write(sandbox_id, { ...record, ...change });
  }

  #path(sandbox_id: string): string {
    return join(this.#data_dir, sandbox_id, FILE);
  }
}
