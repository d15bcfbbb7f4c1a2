import { constants, existsSync, mkdirSync, openSync, readdirSync, realpathSync } from 'node:fs';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { ApiError, StartError } from '../contract/errors.ts';
import type { SandboxView } from '../contract/sandboxes.ts';
import { readUndeliveredApart } from '../outbox/sqlite/undelivered/hand-over-process.ts';
import { hold, requestDaemon } from './control-client.ts';
import { copyRootfs } from './copy.ts';
import { daemonError, initBody, namesIn } from './daemon-answers.ts';
import { isProcessAlive, killMarked, waitForExit } from './host-process.ts';
import type { Isolation } from './isolation.ts';
import { launchDaemon, revokeControl } from './launch.ts';
import type { ProgramCopies } from './program.ts';
import { removeTree } from './remove.ts';
import type { ResourceGroups } from './resource-groups.ts';
import { prepareRootfs, stateDirOf } from './rootfs.ts';
import type {
  HandOverTrust,
  Runtime,
  RuntimeChange,
  RuntimeEnd,
  RuntimeFork,
  RuntimeSpec,
  RuntimeState,
  UndeliveredPage,
} from './runtime.ts';
import { SandboxFiles, type SandboxRecord } from './sandbox-files.ts';
import { DamagedOutboxes, noteDamage, takeOutbox } from './undelivered.ts';

const SANDBOX_ID = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$/;
const ASK_TIMEOUT_MS = 5_000;
/** A start, or a pause with its freezing and its flush; a disk may be slow. */
const CHANGE_TIMEOUT_MS = 60_000;
/** Twice the daemon's own grace, and the commit of `sandbox.killed`. */
const STOP_TIMEOUT_MS = 30_000;

export interface LocalRuntimeParts {
  /** Made where missing; one directory for each sandbox is in it. */
  data_dir: string;
  isolation: Isolation;
  programs: ProgramCopies;
  groups: ResourceGroups;
  /** Ranges that webhooks of sandboxes may lead to beside public addresses. */
  webhook_cidrs: string[];
  clock: Clock;
  log: Log;
}

/**
 * Sandboxes on this machine: a directory each, with a root file system, a daemon of its own and its processes. What
 * runs outlives this program; everything that is known is on the disk. Source: contract section 7, `--runtime local`.
 */
export class LocalRuntime implements Runtime {
  readonly #parts: LocalRuntimeParts;
  #data_dir: string;
  #data_dir_fd = -1;
  readonly #damaged: DamagedOutboxes;

  constructor(parts: LocalRuntimeParts) {
    this.#parts = parts;
    this.#damaged = new DamagedOutboxes(parts.data_dir, parts.clock, parts.log);
    this.#data_dir = parts.data_dir;
  }

  async start(): Promise<void> {
    const { data_dir, isolation, programs, clock } = this.#parts;
    try {
      mkdirSync(data_dir, { recursive: true, mode: 0o700 });
      this.#data_dir = realpathSync(data_dir);
      this.#data_dir_fd = openSync(this.#data_dir, constants.O_RDONLY | constants.O_DIRECTORY);
    } catch (error) {
      throw new StartError(`--data-dir ${data_dir}: ${(error as Error).message}`);
    }
    this.#damaged.prune();
    await isolation.check();
    const records = (await this.list()).map((sandbox_id) => this.#files(sandbox_id).readRecord());
    const used = new Set(records.flatMap((record) => record?.program_version ?? []));
    programs.prune(used, clock.wallMs());
    // Not with the first claim: it is a hundred megabytes.
    programs.installed(programs.version());
  }

  async create(spec: RuntimeSpec): Promise<{ pod_name: string }> {
    const files = this.#files(spec.sandbox_id);
    const found = files.readRecord();
    if (found && found.state !== 'creating') return this.#again(files, found, spec);
    await this.#building(files, async () => {
      prepareRootfs(files.rootfs, spec.sandbox_id);
      await this.#run(files, spec);
    });
    return { pod_name: podName(spec.sandbox_id) };
  }

  /** The daemon tells whether the spec is the one it was made with. */
  async #again(files: SandboxFiles, found: SandboxRecord, spec: RuntimeSpec): Promise<{ pod_name: string }> {
    if (await isLost(found)) throw new ApiError('conflict', 'The sandbox has ended.');
    await this.#init(files, spec);
    return { pod_name: podName(spec.sandbox_id) };
  }

  /** Does what makes a sandbox; where that fails nothing is left of it. */
  async #building(files: SandboxFiles, build: () => Promise<void>): Promise<void> {
    await this.remove(files.sandbox_id);
    try {
      mkdirSync(files.directory, { mode: 0o700 });
      await build();
    } catch (error) {
      await this.remove(files.sandbox_id);
      throw error;
    }
  }

  async #run(files: SandboxFiles, spec: RuntimeSpec): Promise<void> {
    const { isolation, groups, clock } = this.#parts;
    const { sandbox_id, team_id, memory_mib, cpu_millis, webhook } = spec;
    const command = isolation.command(files);
    const record: SandboxRecord = {
      program_version: command.program_version,
      ...{ sandbox_id, team_id, memory_mib, cpu_millis, watch_dir: webhook?.watch_dir ?? null },
      ...{ state: 'creating', outcome: null, is_paused: false, daemon: null, has_record_key: true },
    };
    files.writeRecord(record);
    record.daemon = await launchDaemon(clock, files, command, groups.make(sandbox_id));
    await this.#init(files, spec);
    revokeControl(files);
    groups.limit(sandbox_id, record);
    files.writeRecord({ ...record, state: 'created' });
  }

  async #init(files: SandboxFiles, spec: RuntimeSpec): Promise<void> {
    const request = {
      method: 'POST',
      path: '/sandbox/init',
      body: initBody(spec, this.#parts.webhook_cidrs),
    };
    const answer = await requestDaemon(files.socket_address, { ...request, within_ms: CHANGE_TIMEOUT_MS });
    if (answer.outcome !== 'answered' || answer.status !== 200) throw daemonError(answer);
  }

  async pause(sandbox_id: string, reason: string | null): Promise<RuntimeChange> {
    const changed = await this.#change(sandbox_id, 'POST', '/sandbox/pause', { reason });
    if (changed === 'done') this.#note(sandbox_id, { is_paused: true });
    return changed;
  }

  async resume(sandbox_id: string, reason: string | null): Promise<RuntimeChange> {
    const changed = await this.#change(sandbox_id, 'POST', '/sandbox/resume', { reason });
    if (changed === 'done') this.#note(sandbox_id, { is_paused: false });
    return changed;
  }

  #note(sandbox_id: string, change: Partial<SandboxRecord>): void {
    const files = this.#files(sandbox_id);
    const record = files.readRecord();
    if (record) files.writeRecord({ ...record, ...change });
  }

  async #change(sandbox_id: string, method: string, path: string, body: object): Promise<RuntimeChange> {
    const files = this.#files(sandbox_id);
    if (await isLost(files.readRecord())) return 'lost';
    files.trimLog();
    const answer = await requestDaemon(files.socket_address, {
      method,
      path,
      body,
      within_ms: CHANGE_TIMEOUT_MS,
    });
    if (answer.outcome === 'answered' && answer.status === 200) return 'done';
    if (await isLost(files.readRecord())) return 'lost';
    throw daemonError(answer);
  }

  async fork(source_id: string, child: RuntimeSpec): Promise<RuntimeFork> {
    const source = this.#files(source_id);
    if (await isLost(source.readRecord())) return { outcome: 'lost' };
    const files = this.#files(child.sandbox_id);
    await this.#building(files, async () => {
      await this.#copy(source, files);
      prepareRootfs(files.rootfs, child.sandbox_id);
      await this.#run(files, child);
      if ((await this.pause(child.sandbox_id, 'fork')) === 'lost') {
        throw new ApiError('internal_error', "The fork's daemon has died.");
      }
    });
    return { outcome: 'created', pod_name: podName(child.sandbox_id) };
  }

  /** The source stands still from before the first file is read until after the last. */
  async #copy(source: SandboxFiles, target: SandboxFiles): Promise<void> {
    const held = await hold(source.socket_address, CHANGE_TIMEOUT_MS);
    if ('outcome' in held) throw daemonError(held);
    try {
      const state_dir = stateDirOf(source.rootfs);
      if (state_dir === null) throw new ApiError('internal_error', 'The source has lost its outbox.');
      await copyRootfs(source.rootfs, state_dir, target.rootfs);
      if (!held.isKept()) throw new ApiError('internal_error', 'The source went on while it was copied.');
    } finally {
      await held.release();
    }
  }

  async change(
    sandbox_id: string,
    { env, memory_mib }: { env?: Record<string, string>; memory_mib?: number },
  ): Promise<RuntimeChange> {
    const files = this.#files(sandbox_id);
    const record = files.readRecord();
    if (!record || (await isLost(record))) return 'lost';
    if (memory_mib !== undefined) {
      this.#parts.groups.limit(sandbox_id, { ...record, memory_mib });
      this.#note(sandbox_id, { memory_mib });
    }
    if (env === undefined) return 'done';
    const request = { method: 'PUT', path: '/sandbox/env', body: { env: {} }, within_ms: ASK_TIMEOUT_MS };
    const answer = await requestDaemon(files.socket_address, request);
    const without = Object.fromEntries(namesIn(answer).map((name) => [name, null]));
    return this.#change(sandbox_id, 'PUT', '/sandbox/env', { env: { ...without, ...env } });
  }

  async end(sandbox_id: string): Promise<RuntimeEnd> {
    const files = this.#files(sandbox_id);
    const record = files.readRecord();
    if (!record || record.state === 'creating') {
      await this.#kill(files);
      return { outcome: 'absent' };
    }
    if (record.state === 'ended') return { outcome: record.outcome ?? 'lost' };
    const outcome = await this.#stop(files, record);
    await this.#kill(files);
    files.writeRecord({ ...record, state: 'ended', outcome });
    return { outcome };
  }

  async #stop(files: SandboxFiles, record: SandboxRecord): Promise<'killed' | 'lost'> {
    // A daemon that is gone after this was written has ended because it was asked to, by whoever asked first.
    if (await isLost(record)) return record.state === 'ending' ? 'killed' : 'lost';
    files.writeRecord({ ...record, state: 'ending' });
    const request = { method: 'POST', path: '/sandbox/stop', within_ms: ASK_TIMEOUT_MS };
    const answer = await requestDaemon(files.socket_address, request);
    const is_asked = answer.outcome === 'answered' && answer.status === 202;
    const has_ended =
      is_asked && record.daemon && (await waitForExit(this.#parts.clock, record.daemon, STOP_TIMEOUT_MS));
    if (!has_ended)
      this.#parts.log.warn({ sandbox_id: files.sandbox_id }, "a sandbox's daemon had to be killed");
    return has_ended ? 'killed' : 'lost';
  }

  /** Whatever still runs of it, found by its mark and not by a record that may be missing. */
  async #kill(files: SandboxFiles): Promise<void> {
    await killMarked(this.#parts.clock, files.directory);
    this.#parts.groups.remove(files.sandbox_id);
  }

  async *handOver(sandbox_id: string, trust: HandOverTrust): AsyncGenerator<UndeliveredPage> {
    const files = this.#files(sandbox_id);
    const record = files.readRecord();
    if (!record || record.state === 'creating') return;
    if (record.state !== 'ended') throw new ApiError('conflict', 'The sandbox has not ended.');
    const state_dir = takeOutbox(files);
    if (state_dir === null) {
      const trouble = 'the state directory is gone: what it held is not known';
      yield { records: [], lost_records: 0, set_aside: 0, trouble };
      return;
    }
    const record_key = record.has_record_key ? trust.record_key : null;
    for await (const page of readUndeliveredApart(
      { ...trust, sandbox_id, record_key, state_dir },
      this.#parts.clock,
    )) {
      if (page.trouble !== null) noteDamage(files);
      yield page;
    }
  }

  async remove(sandbox_id: string): Promise<void> {
    const files = this.#files(sandbox_id);
    await this.#kill(files);
    this.#damaged.preserve(files);
    await removeTree(files.directory);
  }

  async inspect(sandbox_id: string): Promise<RuntimeState> {
    const files = this.#files(sandbox_id);
    const record = files.readRecord();
    if (!record || record.state === 'creating') return 'absent';
    if (await isLost(record)) return 'lost';
    const request = { method: 'GET', path: '/sandbox', within_ms: ASK_TIMEOUT_MS };
    const answer = await requestDaemon(files.socket_address, request);
    if (answer.outcome === 'answered' && answer.status === 200) {
      const { state } = (answer.data ?? {}) as Partial<SandboxView>;
      return state === 'paused' || state === 'running' ? state : 'lost';
    }
    if (await isLost(record)) return 'lost';
    // It lives, and has too much to do to answer, or is stopped itself.
    return record.is_paused ? 'paused' : 'running';
  }

  async isAlive(sandbox_id: string): Promise<boolean> {
    const files = this.#files(sandbox_id);
    const record = files.readRecord();
    if (await isLost(record)) return false;
    files.trimLog();
    return true;
  }

  controlSocket(sandbox_id: string): string | null {
    const { socket_address } = this.#files(sandbox_id);
    return existsSync(socket_address) ? socket_address : null;
  }

  async list(): Promise<string[]> {
    return readdirSync(this.#data_dir).filter((name) => SANDBOX_ID.test(name));
  }

  #files(sandbox_id: string): SandboxFiles {
    if (!SANDBOX_ID.test(sandbox_id)) throw new ApiError('not_found', 'There is no such sandbox.');
    return new SandboxFiles(this.#data_dir, this.#data_dir_fd, sandbox_id);
  }
}

async function isLost(record: SandboxRecord | null): Promise<boolean> {
  if (!record?.daemon || record.state === 'creating' || record.state === 'ended') return true;
  return !(await isProcessAlive(record.daemon));
}

function podName(sandbox_id: string): string {
  return `local-${sandbox_id}`;
}
