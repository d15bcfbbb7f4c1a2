import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { VERSION } from '../../base/version.ts';
import { PAUSE_FLUSH_MS } from '../../contract/defaults.ts';
import type { EndpointView } from '../../contract/deliveries.ts';
import { ApiError } from '../../contract/errors.ts';
import type { SandboxState, SandboxView } from '../../contract/sandbox.ts';
import type { Dispatcher } from '../../outbox/dispatcher.ts';
import type { OutboxClient } from '../../outbox/sqlite/client.ts';
import type { Supervisor } from '../../process/supervisor.ts';
import type { Watcher } from '../../watch/thread/watcher.ts';
import type { DaemonConfig } from '../config.ts';
import type { DaemonCore, Initialisation } from '../core.ts';
import type { DaemonState } from '../daemon-state.ts';
import type { Environment } from '../environment.ts';
import type { Metrics } from '../metrics.ts';
import type { PauseSwitch } from '../pause-switch.ts';
import type { Publisher } from '../publisher.ts';
import type { Sandbox } from '../sandbox.ts';
import { startingError } from '../start-gate.ts';
import type { Tunnels } from '../tunnels.ts';
import type { FileService } from './files/file-service.ts';

/** What an API context reads and acts on. */
export interface ApiContextParts {
  config: DaemonConfig;
  log: Log;
  clock: Clock;
  metrics: Metrics;
  environment: Environment;
  life: DaemonState;
  core: DaemonCore;
  /** The sandbox; null until it has an identity. */
  sandbox: () => Sandbox | null;
  uptimeMs: () => number;
  /** Gives the sandbox its identity and starts it. Throws StartError, or `shutting_down`. */
  initialise: (given: Initialisation, env: Record<string, string>) => Promise<void>;
  /** The file operations, loaded when they are first asked for. */
  files: () => Promise<FileService>;
  /** Ends the sandbox without delivering what is pending. */
  stop: () => Promise<void>;
}

/**
 * What the routes can see and do while the daemon runs. Each route is given only its slice of it, as an interface
 * beside the route. Parts that do not exist yet are refused with the error that the client gets.
 */
export class ApiContext {
  readonly config: DaemonConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly environment: Environment;
  readonly #parts: ApiContextParts;

  constructor(parts: ApiContextParts) {
    this.config = parts.config;
    this.log = parts.log;
    this.clock = parts.clock;
    this.metrics = parts.metrics;
    this.environment = parts.environment;
    this.#parts = parts;
  }

  /** The present state. */
  get state(): SandboxState | 'starting' {
    return this.#parts.life.shown;
  }

  /** The TCP port of the local API. */
  get port(): number {
    return this.#parts.core.api.listeners.port;
  }

  /** The outbox. Throws `outbox_unavailable` until it is open. */
  get store(): OutboxClient {
    return this.#parts.core.store;
  }

  /** Where clients publish. Throws `outbox_unavailable` until the daemon has started. */
  get publisher(): Publisher {
    return this.#parts.core.publisher;
  }

  /** The processes. Throws `conflict` before the init and `outbox_unavailable` until the daemon has started. */
  get supervisor(): Supervisor {
    const { life, core } = this.#parts;
    if (life.stage === 'awaiting_init') throw awaitingInit();
    const supervisor = this.#sandbox?.supervisor;
    if (!supervisor || !core.gate.is_open) throw startingError();
    return supervisor;
  }

  /** The delivery; null without a webhook. */
  get dispatcher(): Dispatcher | null {
    return this.#sandbox?.dispatcher ?? null;
  }

  /** The directory watch; null if there is none. */
  get watcher(): Watcher | null {
    return this.#sandbox?.watcher ?? null;
  }

  /** The tunnels of the webhook; null unless it leaves through the manager. */
  get tunnels(): Tunnels | null {
    return this.#sandbox?.tunnels ?? null;
  }

  /** The file operations, loaded when they are first asked for. */
  files(): Promise<FileService> {
    return this.#parts.files();
  }

  get #sandbox(): Sandbox | null {
    return this.#parts.sandbox();
  }

  /** Whether a connection came over the control socket. */
  isControl(socket: Socket): boolean {
    return this.#parts.core.api.listeners.isControl(socket);
  }

  /** Removes the control token: from now on only the control socket grants control. */
  forgetToken(): void {
    this.#parts.core.token.forget();
  }

  /** Gives the sandbox its identity and starts it. Throws StartError, or `shutting_down`. */
  initialise(given: Initialisation, env: Record<string, string>): Promise<void> {
    return this.#parts.initialise(given, env);
  }

  /**
   * Freezes all processes and stops delivering, or without `memory` ends them and goes on delivering. Idempotent. Resolves
   * with whether they are kept. Throws `conflict` where the daemon would end with them. Source: contract section 4,
   * `/sandbox/pause`.
   */
  async pause(reason: string | null, flush_ms = PAUSE_FLUSH_MS, memory = true): Promise<boolean> {
    const pause_switch = this.#pauseSwitch();
    if (!memory) this.#checkMayEmpty();
    return pause_switch.pause(reason, flush_ms, memory);
  }

  /** Resumes processes and delivery, or without `memory` ends what the pause kept. Otherwise as `pause`. */
  async resume(reason: string | null, memory = true): Promise<boolean> {
    const pause_switch = this.#pauseSwitch();
    if (!memory) this.#checkMayEmpty();
    return pause_switch.resume(reason, memory);
  }

  #checkMayEmpty(): void {
    if (!this.#sandbox?.main) return;
    throw new ApiError('conflict', 'memory: the daemon has a main command and ends with it.');
  }

  /** Freezes all processes during `work`, without an event, with a copy of the outbox beside it for a fork. */
  async quiesce(work: (over: AbortSignal) => Promise<void>): Promise<void> {
    await this.#pauseSwitch().quiesce(work);
  }

  #pauseSwitch(): PauseSwitch {
    const { life } = this.#parts;
    if (life.is_ending) throw new ApiError('shutting_down');
    if (life.stage === 'awaiting_init') throw awaitingInit();
    const pause_switch = this.#sandbox?.pause_switch;
    if (life.stage === 'starting' || !pause_switch) {
      throw new ApiError('conflict', 'The sandbox is starting.');
    }
    return pause_switch;
  }

  /** Ends the sandbox without delivering what is pending: the caller takes over. Idempotent. */
  stop(): Promise<void> {
    return this.#parts.stop();
  }

  /** The answer of `GET /sandbox`. Source: contract section 4. */
  async view(): Promise<SandboxView> {
    const { config, state, store, dispatcher, watcher } = this;
    const { core, uptimeMs } = this.#parts;
    const supervisor = this.#sandbox?.supervisor;
    // Nothing else is known of an endpoint before its dispatcher exists.
    return {
      ...core.identity,
      state: state === 'starting' ? 'running' : state,
      version: VERSION,
      uptime_ms: uptimeMs(),
      outbox: store.counts(),
      endpoint: dispatcher?.endpointHealth() ?? (config.webhook_url === null ? null : UNTRIED),
      watcher: watcher?.status() ?? null,
      resource_usage: (await supervisor?.usage()) ?? { cpu_ms: 0, memory_bytes: 0, processes: 0 },
    };
  }

  /** Why the outbox cannot be written; null if it can. */
  get outbox_trouble(): string | null {
    return this.#parts.core.trouble;
  }

  /** What was found damaged or missing since the start, one line each. */
  get outbox_damages(): readonly string[] {
    return this.#parts.core.damages;
  }
}

/** An endpoint before its dispatcher exists. */
const UNTRIED: EndpointView = { health: 'ok', next_probe_at: null, refusals: null };

function awaitingInit(): ApiError {
  return new ApiError('conflict', 'The sandbox has not been initialised: POST /api/v1/sandbox/init first.');
}
