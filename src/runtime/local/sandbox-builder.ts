import { closeSync, mkdirSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import { allEnded } from '../../base/in-parallel.ts';
import type { Log } from '../../base/log.ts';
import { ApiError } from '../../contract/errors.ts';
import { authorityOf } from '../../webhook/connect-method.ts';
import { hold, requestDaemon } from '../control-client.ts';
import {
  DAEMON_CHANGE_TIMEOUT_MS,
  daemonError,
  forkPauseBody,
  initBody,
  isSuccess,
  ServedDaemons,
} from '../daemon-requests.ts';
import { copyRootfs } from '../disk/copy.ts';
import type { SandboxDisks } from '../disk/sandbox-disks.ts';
import type { ResourceGroups } from '../limits/resource-groups.ts';
import type { LocalNetworks, SandboxNetwork } from '../networks/local-networks.ts';
import { openStateDir, prepareRootfs } from '../rootfs.ts';
import { type Fence, type ForkFences, isGone, type RuntimeSpec } from '../runtime.ts';
import { type Begin, stepsOf } from '../steps.ts';
import type { Isolation } from '../walls/isolation.ts';
import type { SandboxUsers } from '../walls/sandbox-users.ts';
import { launchDaemon, revokeControl } from './launch.ts';
import { changeThroughDaemon, isLost, updateRecord } from './running-sandbox.ts';
import type { LocalRecord, SandboxFiles } from './sandbox-files.ts';

/** What a `SandboxBuilder` works with. */
export interface SandboxBuilderParts {
  isolation: Isolation;
  groups: ResourceGroups;
  users: SandboxUsers;
  disks: SandboxDisks;
  networks: LocalNetworks;
  /** Ranges that webhooks of sandboxes may reach in addition to public addresses. */
  webhook_cidrs: string[];
  /** Opens the way of its webhooks, if they leave through the manager. */
  openEgress: (files: SandboxFiles, record: LocalRecord) => void;
  clock: Clock;
  log: Log;
  /** Removes everything of a sandbox, running or not. Idempotent. */
  remove: (files: SandboxFiles) => Promise<void>;
}

/** Creates sandboxes, new ones and copies. If that fails, nothing of the sandbox is left. */
export class SandboxBuilder {
  readonly #parts: SandboxBuilderParts;
  readonly #served: ServedDaemons;

  constructor(parts: SandboxBuilderParts) {
    this.#parts = parts;
    this.#served = new ServedDaemons(parts.log);
  }

  /**
   * Creates a sandbox, or confirms that the existing one was made from the same spec. Throws `conflict` if the existing
   * one has ended or differs, `invalid_request` for a spec that its daemon refuses, and `internal_error`.
   */
  async create(files: SandboxFiles, spec: RuntimeSpec, fence?: Fence): Promise<void> {
    const begin = stepsOf(fence, () => files.takenBy());
    const found = files.readRecord();
    if (found && found.state !== 'creating') {
      if (await isLost(found)) throw new ApiError('conflict', 'The sandbox has ended.');
      // The daemon compares the spec with the one it was initialised with.
      await this.#initialise(files, spec, found, begin);
      return;
    }
    await this.#build(files, spec, begin, async (user, network) => {
      await begin('prepare the root');
      prepareRootfs(files.rootfs, spec.sandbox_id, user);
      await this.#launch(files, spec, begin, user, network);
    });
  }

  /** Creates a paused copy of a living sandbox. Throws `internal_error` and what the source's daemon refuses. */
  async copy(
    source: SandboxFiles,
    files: SandboxFiles,
    spec: RuntimeSpec,
    fences?: ForkFences,
  ): Promise<void> {
    const { groups, clock } = this.#parts;
    const begin = stepsOf(fences?.child, () => files.takenBy());
    await this.#build(files, spec, begin, async (user, network) => {
      await this.#copyRoot(
        source,
        files,
        user,
        stepsOf(fences?.source, () => source.takenBy()),
      );
      await begin('prepare the root');
      prepareRootfs(files.rootfs, spec.sandbox_id, user);
      const features = await this.#launch(files, spec, begin, user, network);
      await begin('pause the copy');
      const body = forkPauseBody(features);
      const paused = await changeThroughDaemon(files, 'POST', '/sandbox/pause', body);
      if (isGone(paused)) throw new ApiError('internal_error', "The fork's daemon has died.");
      const held_mib = await groups.hold(spec.sandbox_id, spec.memory_mib, clock);
      await begin('record the pause');
      updateRecord(files, { is_paused: true, held_mib });
    });
  }

  async #build(
    files: SandboxFiles,
    spec: RuntimeSpec,
    begin: Begin,
    build: (user: number | null, network: SandboxNetwork) => Promise<void>,
  ): Promise<void> {
    const { remove, disks, networks, users } = this.#parts;
    await begin('remove what was left');
    await remove(files);
    try {
      await begin('make the directory');
      mkdirSync(files.directory, { mode: 0o700 });
      const attached = begin('attach the network').then(() => networks.attach(files, spec));
      const [network] = await allEnded([attached, disks.make(files, spec.disk_mib, begin)]);
      await build(users.pick(), network);
    } catch (error) {
      await remove(files);
      throw error;
    }
  }

  /** Gives the daemon's features. */
  async #launch(
    files: SandboxFiles,
    spec: RuntimeSpec,
    begin: Begin,
    user: number | null,
    network: SandboxNetwork,
  ): Promise<unknown[]> {
    const { isolation, groups, openEgress, clock } = this.#parts;
    const { sandbox_id, team_id, memory_mib, cpu_millis, webhook } = spec;
    const processes_max = groups.userProcessesMax(memory_mib);
    const as = { user, processes_max, terminals_max: groups.terminalsMax(memory_mib) };
    const command = isolation.command(files, as, network);
    const record: LocalRecord = {
      program_version: command.program_version,
      sandbox_id,
      team_id,
      memory_mib,
      cpu_millis,
      watch_dir: webhook?.watch_dir ?? null,
      state: 'creating',
      outcome: null,
      is_paused: false,
      user,
      daemon: null,
      note: spec.note,
      has_record_key: true,
      has_own_network: network.is_own,
      webhook_authority:
        webhook && network.webhook_egress === 'manager' ? authorityOf(new URL(webhook.url)) : null,
    };
    await begin('record the beginning');
    files.writeRecord(record);
    await begin('start the daemon');
    record.daemon = await launchDaemon(clock, files, command, groups.make(sandbox_id, memory_mib), user);
    const features = await this.#initialise(files, spec, record, begin);
    await begin('take away control');
    revokeControl(files);
    groups.limit(sandbox_id, record);
    await begin('record the sandbox');
    record.state = 'created';
    files.writeRecord(record);
    openEgress(files, record);
    return features;
  }

  /** Gives the daemon's features. */
  async #initialise(
    files: SandboxFiles,
    spec: RuntimeSpec,
    record: LocalRecord,
    begin: Begin,
  ): Promise<unknown[]> {
    await begin('initialise the daemon');
    const egress = record.webhook_authority ? 'manager' : 'direct';
    const answer = await requestDaemon(files.socket_address, {
      method: 'POST',
      path: '/sandbox/init',
      body: initBody(spec, this.#parts.webhook_cidrs, egress),
      within_ms: DAEMON_CHANGE_TIMEOUT_MS,
    });
    if (!isSuccess(answer)) throw daemonError(answer);
    return this.#served.check(answer, spec);
  }

  /**
   * The source is held quiescent from before the first file is read until after the last. Its processes may have evaded
   * that, as with a timer that sends SIGCONT: what they change meanwhile harms nobody but the copy.
   */
  async #copyRoot(
    source: SandboxFiles,
    target: SandboxFiles,
    user: number | null,
    begin: Begin,
  ): Promise<void> {
    const { groups, clock } = this.#parts;
    await begin('hold the source');
    const held = await hold(source.socket_address, DAEMON_CHANGE_TIMEOUT_MS);
    if ('outcome' in held) throw daemonError(held);
    let state_dir: number | null = null;
    try {
      state_dir = openStateDir(source.rootfs);
      if (state_dir === null) throw new ApiError('internal_error', 'The source has lost its outbox.');
      const { daemon } = source.readRecord() ?? {};
      await begin('freeze the source');
      if (daemon) await groups.frozen.freeze(source.sandbox_id, daemon, clock);
      await begin('copy the root');
      await copyRootfs(source.rootfs, state_dir, target.rootfs, user);
      if (!held.isKept()) {
        throw new ApiError('internal_error', 'The source resumed while it was being copied.');
      }
    } finally {
      if (state_dir !== null) closeSync(state_dir);
      // Of a source that another replica has meanwhile, that one decides.
      const is_ours = await begin('thaw the source').then(
        () => true,
        () => false,
      );
      if (is_ours && !source.readRecord()?.is_paused) groups.frozen.thaw(source.sandbox_id);
      await held.release();
    }
  }
}
